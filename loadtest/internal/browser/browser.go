// Package browser drives a real Chromium over the dashboard.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Env names the variable that holds the browser's command, instead of chromium.
const Env = "XSTREAMQ_CHROMIUM"

// patience bounds one step: a loaded machine is slow.
const patience = 30 * time.Second

// Browser is one running Chromium.
type Browser struct {
	ctx    context.Context //nolint:containedctx // chromedp's handle of the browser
	cancel context.CancelFunc
}

// Start starts the browser. Without one it is an error: scripts/apt.sh chromium.
func Start(ctx context.Context) (*Browser, error) {
	command := os.Getenv(Env)
	if command == "" {
		command = "chromium"
	}
	path, err := exec.LookPath(command)
	if err != nil {
		return nil, fmt.Errorf("a browser is needed, scripts/apt.sh chromium installs it: %w", err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"), chromedp.WSURLReadTimeout(patience))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // it refuses to have one as root
	}
	allocator, stop := chromedp.NewExecAllocator(ctx, opts...)
	browser, cancel := chromedp.NewContext(allocator)
	if err := chromedp.Do(browser); err != nil {
		cancel()
		stop()
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return &Browser{browser, func() { cancel(); stop() }}, nil
}

// Close ends the browser.
func (b *Browser) Close() { b.cancel() }

// Page is one tab. Its methods return the first error of a step, with what the tab complained about.
type Page struct {
	ctx    context.Context //nolint:containedctx // chromedp's handle of the tab
	cancel context.CancelFunc

	mu     sync.Mutex
	errors []string
}

// Page opens a tab of the given size, in one of the colour schemes light and dark.
func (b *Browser) Page(width, height int64, scheme string) (*Page, error) {
	ctx, cancel := chromedp.NewContext(b.ctx)
	p := &Page{ctx: ctx, cancel: cancel}
	err := chromedp.Listen(ctx, func(ev any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			text := e.ExceptionDetails.Text
			if x := e.ExceptionDetails.Exception; x != nil {
				text += ": " + x.Description
			}
			p.errors = append(p.errors, text)
		case *log.EventEntryAdded:
			switch e.Entry.Source {
			case log.EntrySourceSecurity, log.EntrySourceViolation, log.EntrySourceJavascript:
				p.errors = append(p.errors, e.Entry.Text)
			}
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err != nil {
		return nil, err
	}
	return p, p.Form(width, height, scheme)
}

// Form gives the tab another size and another colour scheme.
func (p *Page) Form(width, height int64, scheme string) error {
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		return err
	}
	return p.run("form the tab", chromedp.EmulateViewport(width, height))
}

// Close closes the tab.
func (p *Page) Close() { p.cancel() }

// Complaints are exceptions and violations of the content security policy so far.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

func (p *Page) run(what string, actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		return fmt.Errorf("%s: %w; the tab says %q", what, err, p.Complaints())
	}
	return nil
}

// Go opens an address and waits until the page is drawn.
func (p *Page) Go(url string) error {
	return p.run("go to "+url, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(`main[data-ready]`)))
}

// Click clicks what a CSS selector finds, once it can be seen, as a user does.
func (p *Page) Click(selector string) error {
	at := chromedp.CSS(selector)
	return p.run("click "+selector, chromedp.WaitVisible(at), chromedp.Click(at))
}

// See waits until a selector can be seen.
func (p *Page) See(selector string) error {
	return p.run("see "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
}

// Type puts a text into a field, in place of what is there.
func (p *Page) Type(selector, text string) error {
	at := chromedp.CSS(selector)
	return p.run("type into "+selector, chromedp.WaitVisible(at), chromedp.Focus(at), chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.SendKeys(at, text))
}

// Keys presses keys, wherever the focus is.
func (p *Page) Keys(keys string) error { return p.run("press "+keys, chromedp.KeyEvent(keys)) }

// Wait waits until a JavaScript expression is true.
func (p *Page) Wait(expression string) error {
	_, err := value(p, "wait for "+expression, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond)))
	return err
}

// Eval is the value of a JavaScript expression; a promise is awaited.
func Eval[T any](p *Page, expression string) (T, error) {
	return value(p, "evaluate "+expression, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Shot is a picture of what can be seen, as PNG.
func (p *Page) Shot() ([]byte, error) {
	return value(p, "take a picture", chromedp.CaptureScreenshot())
}

func value[T any](p *Page, what string, a chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		err = fmt.Errorf("%s: %w; the tab says %q", what, err, p.Complaints())
	}
	return v, err
}

// First is the address of the first row's link on a page, relative to it; "" where there is none.
func (b *Browser) First(url string) (string, error) {
	p, err := b.Page(1280, 800, "light")
	if err != nil {
		return "", err
	}
	defer p.Close()
	if err := p.Go(url); err != nil {
		return "", err
	}
	return Eval[string](p, `document.querySelector('tbody a')?.getAttribute('href') || ''`)
}
