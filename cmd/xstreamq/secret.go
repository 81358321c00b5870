package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/xstreamq/xstreamq"
)

// password is that of --password-file, else $XSTREAMQ_PASSWORD; "" leaves the URL's own.
func (a *app) password() (string, error) {
	if a.passwordFile == "" {
		return a.getenv("XSTREAMQ_PASSWORD"), nil
	}
	b, err := os.ReadFile(a.passwordFile)
	if err != nil {
		return "", fmt.Errorf("reading --password-file: %w", err)
	}
	p := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if p == "" {
		return "", fmt.Errorf("--password-file %s is empty", a.passwordFile)
	}
	return p, nil
}

// urlSecrets is the password in raw, as written and decoded, also when raw is no valid URL.
func urlSecrets(raw string) []string {
	var s []string
	_, rest, _ := strings.Cut(raw, "://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if _, p, ok := strings.Cut(rest[:at], ":"); ok {
			s = append(s, p)
			if d, err := url.PathUnescape(p); err == nil {
				s = append(s, d)
			}
		}
	}
	if u, err := url.Parse(raw); err == nil {
		for k, v := range u.Query() {
			if strings.Contains(strings.ToLower(k), "password") {
				s = append(s, v...)
			}
		}
	}
	return s
}

// openError says what is wrong with the URL. A parser quotes what it could not read, which may be part of a password,
// so the reason is kept back when the URL holds one.
func (a *app) openError(err error) error {
	if strings.Contains(a.url, "@") || strings.Contains(strings.ToLower(a.url), "password") {
		return &usageError{
			err: fmt.Errorf("--url is not valid (not shown, it may hold a password): %w", xstreamq.ErrInvalidOption),
			hint: "redis://[user@]host:port[/db] with the password in $XSTREAMQ_PASSWORD or --password-file; " +
				"in a URL its special characters must be percent-encoded",
		}
	}
	return &usageError{err: fmt.Errorf("opening --url: %w", err), hint: "--url redis://host:port[/db]"}
}

// safeURL is the URL without anything secret, for messages; "" when it cannot be told apart.
func safeURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		return ""
	}
	if u.Host == "" {
		return u.Scheme + "://" + u.Path
	}
	return u.Scheme + "://" + u.Host
}

// redact is the last line of defence: no text that we print holds a secret that we know.
func (a *app) redact(s string) string {
	for _, x := range a.secrets {
		if len(x) >= 4 { // a shorter one would hit innocent text, and tell where it did
			s = strings.ReplaceAll(s, x, "***")
		}
	}
	return s
}
