// Command shots takes pictures of every page of a dashboard: of one that runs, or of a shop that it opens for that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/browser"
)

func main() {
	url := flag.String("url", "", "a dashboard that runs; \"\": one of a shop that is opened for that")
	out := flag.String("out", ".", "directory for the pictures")
	stream := flag.String("stream", "orders", "stream to show")
	group := flag.String("group", "billing", "group to show")
	only := flag.String("only", "", "pages to show, such as overview,group; \"\": all")
	warm := flag.Duration("warm", 2*time.Minute, "how long the shop works before")
	settle := flag.Duration("settle", 3*time.Second, "wait before each picture")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *url, *out, *stream, *group, *only, *warm, *settle); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, out, stream, group, only string, warm, settle time.Duration) error {
	b, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	if url == "" {
		dir, err := os.MkdirTemp("", "xstreamq-shots-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }() // only the server's files
		s, err := openShop(ctx, dir)
		if err != nil {
			return err
		}
		defer s.close()
		url = s.url
		fmt.Println(url)
		p, err := b.Page(1280, 800, "light") // charts begin when somebody looks
		if err != nil {
			return err
		}
		defer p.Close()
		if err := p.Go(url); err != nil {
			return err
		}
		select {
		case <-time.After(warm):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return shoot(b, url, out, stream, group, only, settle)
}

func shoot(b *browser.Browser, url, out, stream, group, only string, settle time.Duration) error {
	sg := "&stream=" + stream + "&group=" + group
	letter, err := b.First(url + "?page=dead" + sg)
	if err != nil {
		return err
	}
	pages := [][2]string{
		{"overview", ""},
		{"group", "?page=group" + sg},
		{"messages", "?page=messages" + sg},
		{"delayed", "?page=delayed&stream=reminders&group=mailer"},
		{"dead", "?page=dead" + sg},
		{"letter", letter},
		{"paused", "?page=group&stream=emails&group=sender"},
		{"server", "?page=server"},
		{"tasks", "?page=tasks"},
	}
	var all []error
	for _, look := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"light", 1280, 800, "light"}, {"dark", 1280, 800, "dark"}, {"phone", 390, 844, "light"}} {
		for _, page := range pages {
			if only != "" && !strings.Contains(","+only+",", ","+page[0]+",") {
				continue
			}
			all = append(all, picture(b, look.width, look.height, look.scheme, url+page[1], filepath.Join(out, "dash-"+page[0]+"-"+look.name+".png"), settle))
		}
	}
	return errors.Join(all...)
}

func picture(b *browser.Browser, width, height int64, scheme, url, file string, settle time.Duration) error {
	p, err := b.Page(width, height, scheme)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Go(url); err != nil {
		return err
	}
	time.Sleep(settle)
	png, err := p.Shot()
	if err != nil {
		return err
	}
	if said := p.Complaints(); len(said) > 0 {
		return fmt.Errorf("%s: the browser complains: %q", url, said)
	}
	if png, err = small(png); err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o644)
}
