package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
)

// Page, script and API answer under each router, and the path without its slash leads there.
func TestMounts(t *testing.T) {
	t.Parallel()
	client, err := xstreamq.Open("redis://127.0.0.1:1") // nothing of this asks it
	if err != nil {
		t.Fatal(err)
	}
	queues := dash.New(client.Admin(), dash.Config{})
	gin.SetMode(gin.TestMode)
	mux, chiRouter, ginRouter := http.NewServeMux(), chi.NewRouter(), gin.New()
	withMux(mux, queues)
	withChi(chiRouter, queues)
	withGin(ginRouter, queues)
	for name, h := range map[string]http.Handler{"net/http": mux, "chi": chiRouter, "gin": ginRouter} {
		web := httptest.NewServer(h)
		for _, path := range []string{"/ops/queues/", "/ops/queues", "/ops/queues/assets/app.js", "/ops/queues/api/config"} {
			res, err := http.Get(web.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s: %s: %d", name, path, res.StatusCode)
			}
		}
		web.Close()
	}
	queues.Close()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}
