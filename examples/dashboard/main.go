// The dashboard in a service that exists: one line in net/http, chi or gin.
package main

import (
	"cmp"
	"log"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
)

func withMux(mux *http.ServeMux, queues http.Handler) { mux.Handle("/ops/queues/", queues) }

func withChi(r chi.Router, queues http.Handler) { r.Mount("/ops/queues", queues) }

func withGin(r gin.IRouter, queues http.Handler) { r.Any("/ops/queues/*any", gin.WrapH(queues)) }

func main() {
	client, err := xstreamq.Open(cmp.Or(os.Getenv("XSTREAMQ_URL"), "redis://localhost:6379"))
	if err != nil {
		log.Fatal(err)
	}
	queues := dash.New(client.Admin(), dash.Config{ReadOnly: true, Environment: "example"})
	mux, chiRouter, ginRouter := http.NewServeMux(), chi.NewRouter(), gin.New()
	withMux(mux, queues)
	withChi(chiRouter, queues)
	withGin(ginRouter, queues)
	for addr, h := range map[string]http.Handler{"127.0.0.1:8091": mux, "127.0.0.1:8092": chiRouter, "127.0.0.1:8093": ginRouter} {
		log.Printf("http://%s/ops/queues/", addr)
		go func() { log.Fatal(http.ListenAndServe(addr, h)) }()
	}
	select {}
}
