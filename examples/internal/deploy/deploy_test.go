// Package deploy has no code: its tests hold the files for containers and for the host of this repository to what they speak of.
package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// object is what these tests look at of a Kubernetes object.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Selector yaml.MapSlice // of a Service the labels, of a Deployment matchLabels
		Ports    []port
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []container
			}
		}
	}
}

type port struct {
	Name       string
	Port       int    `yaml:"containerPort"`
	TargetPort string `yaml:"targetPort"`
}

type container struct {
	Args []string
	Env  []struct {
		Name, Value string
	}
	Ports     []port
	Readiness *probe `yaml:"readinessProbe"`
	Liveness  *probe `yaml:"livenessProbe"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func objects(t *testing.T) (worker, dash, service object) {
	t.Helper()
	var all []object
	d := yaml.NewDecoder(strings.NewReader(read(t, "deploy/kubernetes.yaml")))
	for {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	if len(all) != 3 || all[0].Kind != "Deployment" || all[1].Kind != "Deployment" || all[2].Kind != "Service" {
		t.Fatalf("not two deployments and a service: %+v", all)
	}
	for _, o := range all[:2] {
		if len(o.Spec.Template.Spec.Containers) != 1 {
			t.Fatalf("%s has not one container", o.Metadata.Name)
		}
	}
	return all[0], all[1], all[2]
}

var drainTimeout = regexp.MustCompile(`xstreamq\.DrainTimeout\((\d+)\*time\.Second\)`)

// The worker is examples/http-worker: its drain ends before it is killed, and it serves the probes and reads the variables.
func TestWorker(t *testing.T) {
	t.Parallel()
	worker, _, _ := objects(t)
	program := read(t, "examples/http-worker/main.go")
	m := drainTimeout.FindStringSubmatch(program)
	if m == nil {
		t.Fatal("examples/http-worker sets no DrainTimeout in seconds")
	}
	drain, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	if grace := worker.Spec.Template.Spec.Grace; grace < drain+5 {
		t.Errorf("terminationGracePeriodSeconds is %d, the program drains for %d s and needs a moment more", grace, drain)
	}
	c := worker.Spec.Template.Spec.Containers[0]
	for what, p := range map[string]*probe{"readiness": c.Readiness, "liveness": c.Liveness} {
		if p == nil || !strings.Contains(program, fmt.Sprintf("%q", "GET "+p.HTTPGet.Path)) {
			t.Errorf("examples/http-worker does not serve the %s probe: %+v", what, p)
		}
		if p != nil && p.HTTPGet.Port != c.Ports[0].Name {
			t.Errorf("the %s probe asks port %q", what, p.HTTPGet.Port)
		}
	}
	for _, e := range c.Env {
		if !strings.Contains(program, fmt.Sprintf("os.Getenv(%q)", e.Name)) {
			t.Errorf("examples/http-worker does not read %s", e.Name)
		}
		if e.Name == "LISTEN" && e.Value != fmt.Sprintf(":%d", c.Ports[0].Port) {
			t.Errorf("it listens on %s, the pod's port is %d", e.Value, c.Ports[0].Port)
		}
	}
}

// The dashboard's arguments are what the command line takes, and it gets its server from the variable that it reads.
func TestDashboard(t *testing.T) {
	t.Parallel()
	_, dash, service := objects(t)
	c := dash.Spec.Template.Spec.Containers[0]
	cmd := exec.Command("go", append(append([]string{"run", "./cmd/xstreamq"}, c.Args...), "--help")...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "xstreamq dash [flags]") {
		t.Errorf("xstreamq %s --help: %v\n%s", strings.Join(c.Args, " "), err, out)
	}
	if !slices.Contains(c.Args, fmt.Sprintf("--addr=:%d", c.Ports[0].Port)) {
		t.Errorf("%q does not listen on the pod's port %d", c.Args, c.Ports[0].Port)
	}
	if len(c.Env) != 1 || !strings.Contains(string(out), "$"+c.Env[0].Name) {
		t.Errorf("the help does not speak of the variables %+v", c.Env)
	}
	labels := dash.Spec.Template.Metadata.Labels
	for _, s := range service.Spec.Selector {
		if labels[fmt.Sprint(s.Key)] != s.Value {
			t.Errorf("the service selects %v=%v, the pods have %v", s.Key, s.Value, labels)
		}
	}
	if len(service.Spec.Selector) == 0 || service.Spec.Ports[0].TargetPort != c.Ports[0].Name {
		t.Errorf("the service does not lead to the pods: %+v", service.Spec)
	}
}

// The image builds what there is, with the Go that go.mod asks for.
func TestContainerfile(t *testing.T) {
	t.Parallel()
	text := read(t, "deploy/Containerfile")
	for _, m := range regexp.MustCompile(`\./[a-z/]+`).FindAllString(text, -1) {
		if _, err := os.Stat(filepath.Join(root, m)); err != nil {
			t.Error(err)
		}
	}
	needs := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	images := "deploy/Containerfile .devcontainer/devcontainer.json .github/workflows/ci.yml"
	for name := range strings.FieldsSeq(images) {
		if !strings.Contains(read(t, name), "golang:"+needs[1]+"-") {
			t.Errorf("%s has no image of Go %s", name, needs[1])
		}
	}
}

// A public host runs what everybody runs, and nothing else.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	var flow struct {
		Jobs map[string]struct {
			Timeout int `yaml:"timeout-minutes"`
			Steps   []struct{ Uses, Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, ".github/workflows/ci.yml")), &flow); err != nil {
		t.Fatal(err)
	}
	var runs []string
	for _, j := range flow.Jobs {
		for _, s := range j.Steps {
			if s.Run != "" {
				runs = append(runs, s.Run)
			}
		}
		if j.Timeout == 0 {
			t.Error("a job without an end")
		}
	}
	if !slices.Equal(runs, []string{".ci/run"}) {
		t.Errorf("it runs %q", runs)
	}
	executable(t, ".ci/run")
}

func TestSetUp(t *testing.T) {
	t.Parallel()
	var c struct{ PostCreateCommand string }
	if err := json.Unmarshal([]byte(read(t, ".devcontainer/devcontainer.json")), &c); err != nil {
		t.Fatal(err)
	}
	script, _, _ := strings.Cut(c.PostCreateCommand, " ")
	executable(t, script)
	_, dir, _ := strings.Cut(read(t, "Makefile"), "git config core.hooksPath ")
	dir, _, _ = strings.Cut(dir, "\n")
	executable(t, dir+"/pre-commit")
}

func TestIssueTemplates(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join(root, ".github/ISSUE_TEMPLATE/*.md"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ Name, About string }
		parts := strings.SplitN(string(text), "---\n", 3)
		if len(parts) != 3 || parts[0] != "" {
			t.Fatalf("%s has no front matter", name)
		}
		if err := yaml.Unmarshal([]byte(parts[1]), &head); err != nil || head.Name == "" || head.About == "" {
			t.Errorf("%s: %v, %+v", name, err, head)
		}
	}
}

func executable(t *testing.T, name string) {
	t.Helper()
	if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%q cannot be run: %v", name, err)
	}
}
