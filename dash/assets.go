package dash

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var files embed.FS

// asset is one file of the pages.
type asset struct {
	body []byte
	kind string
	etag string
}

// assets are all of them by name, read once.
var assets = readAssets()

func readAssets() map[string]*asset {
	all := map[string]*asset{}
	list, _ := files.ReadDir("assets") // embedded: it cannot fail
	for _, f := range list {
		body, _ := files.ReadFile("assets/" + f.Name())
		sum := sha256.Sum256(body)
		a := &asset{body: body, etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		switch path.Ext(f.Name()) { // the system's table may say anything
		case ".js":
			a.kind = "text/javascript; charset=utf-8"
		case ".css":
			a.kind = "text/css; charset=utf-8"
		case ".html":
			a.kind = "text/html; charset=utf-8"
		case ".svg":
			a.kind = "image/svg+xml"
		default:
			a.kind = mime.TypeByExtension(path.Ext(f.Name()))
		}
		all[f.Name()] = a
	}
	return all
}

func (h *Handler) serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	a := assets[name]
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("ETag", a.etag)
	w.Header().Set("Cache-Control", "no-cache") // asked again each time, and answered with 304
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(a.body))
}
