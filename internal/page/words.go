package page

import (
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger"
)

// functions are what templates can call.
var functions = template.FuncMap{
	"amount":   amount,
	"stamp":    stamp,
	"short":    shortTime,
	"age":      func(seconds int64) string { return age(time.Duration(seconds) * time.Second) },
	"took":     took,
	"jobURL":   func(id string) string { return "/jobs/" + segment(id) },
	"ownerURL": func(id string) string { return "/owners/" + segment(id) },
	"apiURL":   apiURL,
	"bar":      balanceBar,
	"word":     func(s any) string { return strings.ReplaceAll(fmt.Sprint(s), "_", " ") },
	"plural":   plural,
	"due":      func(at, now ledger.Time) bool { return at <= now },
}

// segment is an id as one segment of a path. A browser takes a segment of one or two dots for a place in
// the tree, however it is escaped: such ids get a slash before them here, which [pathID] takes away.
func segment(id string) string {
	if dotted(id) {
		id = "/" + id
	}
	return url.PathEscape(id)
}

// pathID is the id that a segment is of.
func pathID(segment string) string {
	if dotted(segment) {
		return strings.TrimPrefix(segment, "/")
	}
	return segment
}

// dotted tells whether an id is one or two dots, after any number of slashes.
func dotted(id string) bool {
	id = strings.TrimLeft(id, "/")
	return id == "." || id == ".."
}

// apiURL is a path of the API, in which each %s stands for an id.
func apiURL(format string, ids ...string) string {
	escaped := make([]any, len(ids))
	for i, id := range ids {
		escaped[i] = url.PathEscape(id)
	}
	return "/v1/" + fmt.Sprintf(format, escaped...)
}

// query is a path with parameters, without the empty ones.
func query(path string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// amount shows credits in groups of three digits, which a narrow space keeps apart and together.
func amount(n int64) string {
	digits := strconv.FormatInt(n, 10)
	if len(digits) <= 4 {
		return digits
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// stamp is a time for machines.
func stamp(t ledger.Time) string { return t.String() }

// shortTime is a time for people: to the second, in UTC.
func shortTime(t ledger.Time) string {
	return time.UnixMicro(int64(t)).UTC().Format("2006-01-02 15:04:05")
}

// age shows how long something lasts in its two largest units.
func age(d time.Duration) string {
	d = max(d, 0)
	switch days := int(d / (24 * time.Hour)); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case days == 0:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d d %d h", days, int(d.Hours())%24)
	}
}

// took shows how long some work took.
func took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// plural counts things, by a number or a pointer to one.
func plural(n any, thing string) string {
	value := reflect.Indirect(reflect.ValueOf(n))
	text := amount(value.Int())
	if text != "1" {
		thing += "s"
	}
	return text + " " + thing
}
