package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a browser may take for what takes a moment: the machine may be busy.
const patience = time.Minute

// chromium is the one browser of all tests, once a test has needed it.
var chromium struct {
	once sync.Once
	err  error
	ctx  context.Context
	end  func()
}

// startChromium starts the browser, or tells why there is none.
func startChromium() {
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, chromium.err = exec.LookPath(name); chromium.err == nil {
			break
		}
	}
	if chromium.err != nil {
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	chromium.ctx = ctx
	chromium.end = func() { end(); endAllocator() }
	chromium.err = chromedp.Do(ctx)
}

// browser is one window, with cookies of its own, that looks at a desk's pages.
type browser struct {
	*desk
	ctx context.Context

	mutex    sync.Mutex
	sites    []string // where it may look; the last is where open goes
	said     []string // on the console
	foreign  []string // what was asked for elsewhere
	expected string   // the one message that is no fault
}

// browse opens a window. Without Chromium the test says so and does not run; where CI=true it fails.
func (d *desk) browse(width, height int64) *browser {
	d.Helper()
	chromium.once.Do(startChromium)
	if chromium.err != nil {
		if os.Getenv("CI") == "true" {
			d.Fatalf("chromium: %v", chromium.err)
		}
		d.Logf("chromium: not run: %v", chromium.err)
		return nil
	}
	ctx, end := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	b := &browser{desk: d, ctx: ctx}
	b.visit(d)
	messages := chromedp.Console(ctx)
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	var both sync.WaitGroup
	both.Go(func() {
		for m, err := range messages {
			if err == nil {
				b.note(&b.said, fmt.Sprintf("%s: %s (%s)", m.Type, m.Text, m.URL))
			}
		}
	})
	both.Go(func() {
		for r, err := range requests {
			if err == nil && !b.may(r.Request.URL) {
				b.note(&b.foreign, r.Request.URL)
			}
		}
	})
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	d.ok(err)
	b.do(chromedp.EmulateViewport(width, height))
	d.Cleanup(func() {
		end()
		both.Wait()
		for _, m := range b.said {
			if b.expected == "" || !strings.Contains(m, b.expected) {
				d.Errorf("the console has a message: %s", m)
			}
		}
		for _, r := range b.foreign {
			d.Errorf("another host is asked: %s", r)
		}
	})
	return b
}

// visit makes another desk's pages the ones that open opens.
func (b *browser) visit(d *desk) { b.note(&b.sites, d.server.URL) }

// may tells whether something at an address may be asked for.
func (b *browser) may(address string) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return strings.HasPrefix(address, "data:") || slices.ContainsFunc(b.sites, func(site string) bool {
		return strings.HasPrefix(address, site+"/")
	})
}

func (b *browser) note(list *[]string, text string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	*list = append(*list, text)
}

// do does what a person does.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	b.ok(chromedp.Do(ctx, steps...))
}

// open goes to a page.
func (b *browser) open(path string) {
	b.Helper()
	eval[chromedp.Void](b, "window.before = true") // nothing else says that an answer is there if it is an error
	b.do(chromedp.Navigate(b.sites[len(b.sites)-1] + path))
	b.until("!window.before && document.readyState === 'complete'")
}

// eval gives the value of an expression in the page.
func eval[T any](b *browser, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, func(p *runtime.EvaluateParams) {
		p.AwaitPromise = new(true)
	}))
	b.ok(err)
	return value
}

// until waits for a condition in the page. While a page gives way to another there is none.
func (b *browser) until(condition string) {
	b.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		if err == nil && ok {
			return
		}
	}
	b.Fatalf("never comes: %s; the page is\n%s", condition, eval[string](b, "document.body.innerText"))
}

// says waits until the page's main part has a text.
func (b *browser) says(wanted string) {
	b.Helper()
	b.until(fmt.Sprintf("document.querySelector('main')?.innerText.includes(%q)", wanted))
}

// click clicks the first element that a selector finds.
func (b *browser) click(selector string) {
	b.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// surroundings makes them light or dark, and lets things move or not.
func (b *browser) surroundings(scheme, motion string) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
		},
	})
	b.ok(err)
}

// shoot keeps a picture of the whole page, if the tests are run with JOBLEDGER_SCREENSHOTS=FOLDER.
func (b *browser) shoot(name string) {
	b.Helper()
	folder := os.Getenv("JOBLEDGER_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	b.ok(err)
	b.ok(os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644))
}

// A job is followed from the list to its story, and from there to its owner; the page of the owner changes
// by itself when the owner's credits do.
func TestBrowserFollowsAJob(t *testing.T) {
	d := newDesk(t, Options{})
	d.busyDay()
	d.look()
	b := d.browse(1280, 800)
	if b == nil {
		return
	}
	b.open("/")
	b.says("checks hold")
	b.until("document.querySelector('#live.on')")
	b.click(`a[href="/jobs?status=failed"]`)
	b.says("img-0001")
	b.click(`a[href="/jobs/img-0001"]`)
	b.says("poll said completed")
	b.says("used at creation")
	b.click(`a[href="/owners/bob"]`)
	b.says("Balance over time")
	b.until("document.querySelector('#live.on')")
	b.do(chromedp.Focus(chromedp.CSS(`#entries a[href="/jobs/img-0010"]`)))
	d.create("quite-new", "bob", 1, "hold")
	b.says("quite-new")
	if at := eval[string](b, "document.activeElement.getAttribute('href')"); at != "/jobs/img-0010" {
		t.Errorf("the focus went to %q", at)
	}
	if eval[string](b, "document.querySelector('#live').textContent") != "live" {
		t.Error("the page does not say that it is live")
	}
}

// The first page begins with what needs no counting, and the counts come by themselves.
func TestBrowserSeesTheCountsCome(t *testing.T) {
	d := newDesk(t, Options{})
	d.grant("alice", "a", 10, 0)
	b := d.browse(1280, 800)
	if b == nil {
		return
	}
	b.open("/")
	b.says("All jobs are being counted")
	b.says("alice")
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.page.Run(ctx) })
	b.says("checks hold")
	b.says("Counted at")
	end()
	running.Wait()
}

// Three lessons are played: flipped between wrong and fixed, and stepped through with the keys.
func TestBrowserPlaysLessons(t *testing.T) {
	d := newDesk(t, Options{})
	b := d.browse(1280, 900)
	if b == nil {
		return
	}
	const told = "document.querySelector('[data-told]').textContent"
	hidden := func() int {
		return eval[int](b, "document.querySelectorAll('svg .not-yet').length")
	}
	for _, name := range []string{"lost-update", "check-then-act", "refund-then-status"} {
		b.open("/lab")
		b.click(fmt.Sprintf("button[value=%q]", name))
		b.says(name + ", wrong version")
		last := eval[int](b, "document.querySelectorAll('tr[data-x]').length") - 1
		b.until(fmt.Sprintf("%s.startsWith('%d of %d')", told, last, last)) // it plays by itself
		b.do(chromedp.KeyEvent(kb.Home))
		b.until(told + " === 'Before the first step.'")
		first := hidden()
		for _, key := range []string{kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowLeft} {
			b.do(chromedp.KeyEvent(key))
		}
		b.until(told + ".startsWith('2 of')")
		if n := hidden(); n == 0 || n >= first {
			t.Errorf("%s: at the second step %d things are still to come, at first %d", name, n, first)
		}
		b.do(chromedp.KeyEvent("f"))
		b.says(name + ", fixed version")
		b.until(told + ".startsWith('2 of')") // the same step
		b.do(chromedp.KeyEvent(kb.End))
		b.until("!" + told + ".startsWith('2 of')")
		if n := hidden(); n > 1 { // the cursor
			t.Errorf("%s: at the end %d things are still to come", name, n)
		}
		b.until("document.querySelector('tr.now') === [...document.querySelectorAll('tr[data-x]')].at(-1)")
	}
	name := eval[string](b, "document.querySelector('.download').href")
	if !strings.HasSuffix(name, "fixed.svg") {
		t.Errorf("the picture to download is %s", name)
	}
}

// A race runs while its page waits for it, and then plays.
func TestBrowserRaces(t *testing.T) {
	d := newDesk(t, Options{})
	b := d.browse(1280, 900)
	if b == nil {
		return
	}
	b.open("/lab")
	b.do(chromedp.SetValue(chromedp.CSS("input[name=workers]"), "4"),
		chromedp.SetValue(chromedp.CSS("input[name=processes]"), "2"),
		chromedp.SetValue(chromedp.CSS("input[name=jobs]"), "3"))
	b.click("input[name=mix]")
	b.click(".race button")
	b.says("48 notifications race for 3 jobs")
	b.says("Every job settled exactly once")
	b.click("[data-go=last]")
	b.until("document.querySelector('[data-go=play]').textContent === 'Play'")
	b.click("[data-go=play]")
	b.until("document.querySelector('[data-go=play]').textContent === 'Pause'")
	b.click("[data-go=play]")
	b.until("document.querySelector('[data-go=play]').textContent === 'Play'")
	b.says("jobledger race --workers 4 --notifications 16 --processes 2 --jobs 3 --mode charge --mix")
}

// A run that takes long is followed until it ends, and then shown.
func TestBrowserWaitsForARun(t *testing.T) {
	d := newDesk(t, Options{})
	b := d.browse(1280, 900)
	if b == nil {
		return
	}
	hold := make(chan struct{})
	_, err := d.page.start("slow", "SQLite", func(context.Context, *run) ([]picture, error) {
		<-hold
		return nil, fmt.Errorf("it failed in the end")
	})
	d.ok(err)
	b.open("/lab/runs/1")
	b.says("Under way")
	close(hold)
	b.says("it failed in the end")
}

// With a token only: the form, a wrong token, the right one, the page that was asked for, and out again.
func TestBrowserSignsIn(t *testing.T) {
	d, secret := newClosedDesk(t, "read")
	d.grant("alice", "a", 10, 0)
	b := d.browse(1280, 800)
	if b == nil {
		return
	}
	b.expected = "401 (Unauthorized)"
	b.open("/owners/alice")
	b.says("Sign in")
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), "jl_wrong\n"))
	b.says("This token is not valid")
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), secret+"\n"))
	b.says("Balance over time")
	if at := eval[string](b, "location.pathname + location.search"); at != "/owners/alice" {
		t.Errorf("it leads to %s", at)
	}
	if cookie := eval[string](b, "document.cookie"); cookie != "" {
		t.Errorf("a script reads %s", cookie)
	}
	_, err := d.RevokeToken(t.Context(), "ann")
	d.ok(err)
	b.says("Sign in") // the page that follows is told at once
}

// What is not there is told, with a way back.
func TestBrowserSeesAnError(t *testing.T) {
	d := newDesk(t, Options{})
	b := d.browse(1280, 800)
	if b == nil {
		return
	}
	b.expected = "404 (Not Found)"
	b.open("/jobs/nobody")
	b.says(`there is no job "nobody"`)
	b.click("main a[href='/']")
	b.says("Jobs by status")
}
