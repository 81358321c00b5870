package browser

import (
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Hide minimizes the window of the tab, or brings it back: nobody sees the page meanwhile, and it is told so.
func (p *Page) Hide(hidden bool) error {
	w, err := chromedp.Call(p.ctx, browser.GetWindowForTarget, browser.GetWindowForTargetParams{})
	if err != nil {
		return err
	}
	state := browser.WindowStateNormal
	if hidden {
		state = browser.WindowStateMinimized
	}
	_, err = chromedp.Call(p.ctx, browser.SetWindowBounds, browser.SetWindowBoundsParams{WindowID: w.WindowID, Bounds: &browser.Bounds{WindowState: state}})
	return err
}

// Clipboard is the text that was copied. A page at a secure address reads it: one on this machine will do.
func (b *Browser) Clipboard(secure string) (string, error) {
	p, err := b.Page(800, 600, "light")
	if err != nil {
		return "", err
	}
	defer p.Close()
	if err := p.Go(secure); err != nil {
		return "", err
	}
	if _, err := chromedp.Call(p.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "clipboard-read"}, Setting: browser.PermissionSettingGranted, Origin: secure,
	}); err != nil {
		return "", err
	}
	if _, err := chromedp.Call(p.ctx, page.BringToFront, cdp.Empty{}); err != nil {
		return "", err
	}
	return Eval[string](p, `navigator.clipboard.readText()`)
}
