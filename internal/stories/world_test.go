package stories

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"intumwa/internal/testenv"
)

// scene describes the set-up of a story. The zero value is one carrier, lumitel, for
// every number, and one gateway with all roles.
type scene struct {
	carriers []carrier
	gateways []tree // one process each, with its own configuration; "roles" goes to the command line, "name" is its name
	config   tree   // of all of them
	// The story has its own servers, which it may kill.
	ownPostgres, ownRedis bool
	// The story has its own PostgreSQL with a synchronous standby.
	standby bool
	// The story has its own PostgreSQL under Patroni.
	patroni bool
	// The story has its own set of Redis servers.
	redisSet func(testing.TB) *testenv.RedisSet
	// The story starts its gateways itself.
	dark bool
	// The story causes protocol errors on purpose, so their check is skipped.
	brokenProtocol bool
}

// tree is a part of a configuration file.
type tree map[string]any

// over merges other into t, branch by branch.
func (t tree) over(other tree) tree {
	result := maps.Clone(t)
	if result == nil {
		result = tree{}
	}
	for key, value := range other {
		below, isTree := result[key].(tree)
		if branch, ok := value.(tree); ok && isTree {
			value = below.over(branch)
		}
		result[key] = value
	}
	return result
}

// world is a running scene.
type world struct {
	t        *testing.T
	scene    scene
	dir      string
	database string // URL
	redis    string // URL
	prefix   string // of the keys in Redis
	pool     *pgxpool.Pool
	client   *http.Client

	postgresServer, redisServer *testenv.Server // nil: shared servers
	redisSet                    *testenv.RedisSet
	postgresPair                *testenv.PostgresPair
	patroni                     *testenv.Patroni

	binary string // whose commands the story runs; "" as gateways do

	carriers []*smsc
	lumitel  *smsc // the first carrier
	gateways []*gateway
	gateway  *gateway // the first
	inbox    *inbox

	mu        sync.Mutex
	counter   int // of numbers
	secrets   []string
	numbers   map[string]bool // national digits of every used number
	companies []*company
}

// play builds the scene, starts everything and waits until the gateways are ready and
// bound. The test's cleanup stops it and runs the checks of every world.
func play(t *testing.T, s scene) *world {
	t.Helper()
	w := &world{t: t, scene: s, dir: t.ArtifactDir(), numbers: map[string]bool{}, counter: rand.IntN(100_000)}
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}, Timeout: time.Minute}
	t.Cleanup(w.client.CloseIdleConnections)
	w.serve()
	w.inbox = openInbox(w)
	if len(s.carriers) == 0 {
		s.carriers = []carrier{{}}
	}
	for i, c := range s.carriers {
		w.carriers = append(w.carriers, openCarrier(w, i, c))
	}
	w.lumitel = w.carriers[0]
	if len(s.gateways) == 0 {
		s.gateways = []tree{{}}
	}
	for i, own := range s.gateways {
		w.gateways = append(w.gateways, newGateway(w, "gateway-"+strconv.Itoa(i+1), s.config.over(own)))
	}
	w.gateway = w.gateways[0]
	w.endsWell()
	if s.dark {
		return w
	}
	for _, g := range w.gateways {
		g.start()
	}
	w.bound()
	return w
}

// serve gives the world its PostgreSQL and Redis.
func (w *world) serve() {
	w.t.Helper()
	switch {
	case w.scene.standby:
		w.postgresPair = testenv.NewPostgresPair(w.t)
		w.database = w.postgresPair.URL(w.password())
	case w.scene.patroni:
		w.patroni = testenv.NewPatroni(w.t)
		w.database = w.patroni.URL(w.password())
	case w.scene.ownPostgres:
		w.postgresServer = testenv.NewPostgresServer(w.t)
		w.database = w.withPassword(w.postgresServer.URL())
	default:
		w.database = w.withPassword(testenv.Database(w.t))
	}
	if w.scene.redisSet != nil {
		w.redisSet = w.scene.redisSet(w.t)
		w.prefix = "intumwa"
		w.secret(w.redisSet.Password)
		if w.redisSet.SentinelPassword != "" {
			w.secret(w.redisSet.SentinelPassword)
		}
	} else if w.scene.ownRedis {
		w.redisServer = testenv.NewRedisServer(w.t)
		w.redis, w.prefix = w.redisServer.URL(), "intumwa"
	} else {
		client, prefix := testenv.Redis(w.t)
		w.redis, w.prefix = address(client.Options()), prefix
		if password := client.Options().Password; password != "" {
			w.secret(password)
		}
	}
	w.queries(w.database)
}

// queries connects the story to this database.
func (w *world) queries(database string) {
	w.t.Helper()
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		w.t.Fatalf("reading the database's address: %v", err)
	}
	config.MaxConns = 2
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	if w.pool, err = pgxpool.NewWithConfig(w.t.Context(), config); err != nil {
		w.t.Fatalf("opening the database: %v", err)
	}
	w.t.Cleanup(w.pool.Close)
}

// redisSection is Redis in the configuration.
func (w *world) redisSection() tree {
	if w.redisSet == nil {
		return tree{"url": w.redis, "prefix": w.prefix}
	}
	section := tree{"url": "redis://:" + w.redisSet.Password + "@", "addresses": w.redisSet.Addresses, "prefix": w.prefix,
		"tls": tree{"ca": w.redisSet.CA, "server_name": "localhost"}}
	if w.redisSet.MasterName != "" {
		section["master_name"], section["sentinel_password"] = w.redisSet.MasterName, w.redisSet.SentinelPassword
	}
	return section
}

// withPassword adds a password to a server's address, as a secret that no log may
// contain. (A server without one accepts any.)
func (w *world) withPassword(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		w.t.Fatalf("reading the address of PostgreSQL: %v", err)
	}
	password, has := u.User.Password()
	if !has {
		password = w.password()
		u.User = url.UserPassword(u.User.Username(), password)
	}
	w.secret(password)
	return u.String()
}

func address(o *redis.Options) string {
	u := url.URL{Scheme: "redis", Host: o.Addr, Path: "/" + strconv.Itoa(o.DB)}
	if o.Password != "" {
		u.User = url.UserPassword(o.Username, o.Password)
	}
	return u.String()
}

// bound waits until every open carrier has a bind.
func (w *world) bound() {
	w.t.Helper()
	for _, c := range w.carriers {
		w.eventually(30*time.Second, "a bind at "+c.Name(), func() bool { return c.Stats().Sessions >= c.binds })
	}
}

// number is a new recipient to whom every carrier delivers.
func (w *world) number() string { return w.numberOf(w.lumitel, 0) }

// fated is a new recipient whose last two digits choose the message's fate.
func (w *world) fated(fate int) string { return w.numberOf(w.lumitel, fate) }

func (w *world) numberOf(c *smsc, fate int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counter++
	return w.used(fmt.Sprintf("+257%s%04d%02d", c.prefix, w.counter%10_000, fate))
}

// subscriber is the i-th of a million recipients for a load.
func (w *world) subscriber(i int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used(fmt.Sprintf("+257%s%06d", w.lumitel.prefix, i%1_000_000))
}

func (w *world) used(number string) string {
	w.numbers[number[len(number)-8:]] = true
	return number
}

// word makes a unique word.
func word() string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	text := make([]byte, 10)
	for i := range text {
		text[i] = letters[rand.IntN(len(letters))]
	}
	return string(text)
}

// eventually waits for a condition and fails the story if it does not hold in time.
func (w *world) eventually(within time.Duration, what string, condition func() bool) {
	w.t.Helper()
	if !w.comesTrue(within, condition) {
		w.t.Fatalf("not within %v: %s", within, what)
	}
}

// comesTrue checks once more after the deadline: one check may take long, as a command
// does.
func (w *world) comesTrue(within time.Duration, condition func() bool) bool {
	deadline := time.Now().Add(within)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		over := time.Now().After(deadline)
		if condition() {
			return true
		}
		if over {
			return false
		}
		time.Sleep(pause)
	}
}

// scalar runs a query that returns one value.
func scalar[T any](w *world, query string, args ...any) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var value T
	if err := w.pool.QueryRow(ctx, query, args...).Scan(&value); err != nil {
		w.t.Fatalf("requests the database: %v", err)
	}
	return value
}
