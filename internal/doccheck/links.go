package doccheck

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	inlineCode = regexp.MustCompile("(`+)[^`]+(`+)")
	links      = regexp.MustCompile(`\]\(<?([^()\s>]+(?:\([^()\s]*\))?)>?(?:\s+"[^"]*")?\)|^\s*\[[^\]]+\]:\s+<?(\S+?)>?(?:\s|$)|(?:href|src)="([^"]+)"`)
	headings   = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*\s*$`)
	linkText   = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	htmlID     = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
	scheme     = regexp.MustCompile(`^([a-z][a-z0-9+.-]*:|//)`)
)

// checkLinks reports every relative link that leads nowhere.
func checkLinks(root string, ps []page) (problems []string) {
	anchors := map[string]map[string]bool{}
	for _, p := range ps {
		anchors[p.name] = p.anchors()
	}
	for _, p := range ps {
		_, prose, _ := p.split()
		for i, line := range prose {
			for _, m := range links.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
				target := m[1] + m[2] + m[3] // one of them matched
				if scheme.MatchString(target) {
					continue
				}
				if why := p.follow(root, target, anchors); why != "" {
					problems = append(problems, fmt.Sprintf("%s:%d: link to %s: %s", p.name, i+1, target, why))
				}
			}
		}
	}
	return problems
}

// follow says why the target cannot be reached from the page, "" when it can.
func (p page) follow(root, target string, anchors map[string]map[string]bool) string {
	file, anchor, _ := strings.Cut(target, "#")
	name := p.name
	if file != "" {
		name = path.Join(path.Dir(p.name), file)
		if strings.HasPrefix(file, "/") { // a code host reads it from the repository's root
			name = path.Clean(file[1:])
		}
		if strings.HasPrefix(name, "../") {
			return "it leaves the repository"
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
			return "no such file"
		}
	}
	if known, isPage := anchors[name]; isPage && anchor != "" && !known[anchor] {
		return "no such heading in " + name
	}
	return ""
}

// anchors are the fragments that lead to a place on the page, by the rule of
// GitHub: lower case, punctuation gone, blanks to hyphens, repeats numbered.
func (p page) anchors() map[string]bool {
	found := map[string]bool{}
	_, prose, _ := p.split()
	for _, line := range prose {
		for _, m := range htmlID.FindAllStringSubmatch(line, -1) {
			found[m[1]] = true
		}
		m := headings.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, linkText.ReplaceAllString(m[1], "$1"))
		unique := slug
		for n := 1; found[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", slug, n)
		}
		found[unique] = true
	}
	return found
}
