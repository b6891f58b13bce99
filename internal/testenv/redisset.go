package testenv

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisSet is a redundant set of Redis servers of one test: a master with a replica,
// watched by three Sentinels, or a Cluster. All require passwords and TLS, with a
// certificate for localhost.
type RedisSet struct {
	Servers   []*Server // data servers; with Sentinels the first begins as the master, in a Cluster the first Masters do
	Sentinels []*Server
	Masters   int // number of shards

	Addresses        []string // host:port of each Sentinel, or of each node of the Cluster
	MasterName       string   // "" for a Cluster
	Password         string   // of the servers
	SentinelPassword string
	CA               string // PEM file

	t      testing.TB
	secure *tls.Config
	nodes  []*redis.Client // of Servers
	named  []string        // host:port of Servers
}

const (
	masterName = "intumwa"
	// setWithin bounds the time until the servers have found each other.
	setWithin = 45 * time.Second
)

// NewRedisSentinels starts a master, its replica, and three Sentinels that promote the
// replica when two of them have not heard the master for a second.
func NewRedisSentinels(t testing.TB) *RedisSet {
	t.Helper()
	s := newRedisSet(t)
	s.MasterName, s.Masters, s.SentinelPassword = masterName, 1, "sentinel-"+databaseName("password")
	data := append(s.common(), "--masterauth", s.Password, "--repl-diskless-sync-delay", "0")
	s.serve(redisNode{settings: data})
	host, port, _ := net.SplitHostPort(s.named[0])
	s.serve(redisNode{settings: append(data, "--replicaof", host+" "+port)})
	s.follows(1)
	for range 3 {
		server, address := s.start(redisNode{settings: s.common(), password: s.SentinelPassword,
			sentinel: strings.Join([]string{
				"sentinel sentinel-pass " + s.SentinelPassword,
				"sentinel monitor " + masterName + " " + host + " " + port + " 2",
				"sentinel auth-pass " + masterName + " " + s.Password,
				"sentinel down-after-milliseconds " + masterName + " 1000",
				"sentinel failover-timeout " + masterName + " 5000", ""}, "\n")})
		s.Sentinels, s.Addresses = append(s.Sentinels, server), append(s.Addresses, address)
	}
	for _, address := range s.Addresses {
		sentinel := s.client(address, s.SentinelPassword)
		s.eventually("the Sentinels have found each other and the replica", func() error {
			master, err := sentinel.Do(t.Context(), "SENTINEL", "MASTER", masterName).StringSlice()
			if err != nil {
				return err
			}
			for i := 0; i+1 < len(master); i += 2 {
				if want := map[string]string{"num-other-sentinels": "2", "num-slaves": "1"}[master[i]]; want != "" &&
					master[i+1] != want {
					return fmt.Errorf("%s is %s", master[i], master[i+1])
				}
			}
			return nil
		})
	}
	return s
}

// NewRedisCluster starts a Cluster of three masters with this many replicas each. They
// replace a master that two others have not heard for 1.5 s.
func NewRedisCluster(t testing.TB, replicas int) *RedisSet {
	t.Helper()
	s := newRedisSet(t)
	s.Masters = 3
	settings := append(s.common(), "--masterauth", s.Password, "--repl-diskless-sync-delay", "0", "--tls-cluster", "yes",
		"--repl-ping-replica-period", "1", // Sentinels do not report a replica that has never been pinged
		"--cluster-enabled", "yes", "--cluster-node-timeout", "1500")
	for range s.Masters * (1 + replicas) {
		s.serve(redisNode{settings: settings, cluster: true})
	}
	s.Addresses = s.named
	do := func(node int, command ...any) string {
		text, err := s.nodes[node].Do(t.Context(), command...).Text()
		if err != nil {
			t.Fatalf("joining the nodes of a cluster: %v: %v", command[:2], err)
		}
		return text
	}
	const slots = 16384
	for i := range s.Servers {
		do(i, "CLUSTER", "SET-CONFIG-EPOCH", i+1) // otherwise they first resolve a conflict
		if i < s.Masters {
			do(i, "CLUSTER", "ADDSLOTSRANGE", i*slots/s.Masters, (i+1)*slots/s.Masters-1)
		}
	}
	for _, address := range s.named[1:] {
		host, port, _ := net.SplitHostPort(address)
		do(0, "CLUSTER", "MEET", host, port)
	}
	s.whole(len(s.Servers))
	for i := s.Masters; i < len(s.Servers); i++ {
		do(i, "CLUSTER", "REPLICATE", do(i%s.Masters, "CLUSTER", "MYID"))
	}
	for i := s.Masters; i < len(s.Servers); i++ {
		s.follows(i)
	}
	for i := range s.nodes {
		s.eventually("every node lists the replicas", func() error {
			shards,
				err := s.nodes[i].ClusterSlots(t.Context()).Result() //nolint:staticcheck // clients call it
			listed := 0
			for _, shard := range shards {
				listed += len(shard.Nodes)
			}
			if err == nil && listed != len(s.Servers) {
				err = fmt.Errorf("it lists %d nodes: %+v", listed, shards)
			}
			return err
		})
	}
	return s
}

// follows waits until a replica has its master's data.
func (s *RedisSet) follows(i int) {
	s.t.Helper()
	s.eventually("a replica has what its master has", func() error {
		if s.Role(s.t.Context(), i) != "slave" {
			return errors.New("it has not")
		}
		return nil
	})
}

// whole waits until every node sees this many nodes and all slots are served.
func (s *RedisSet) whole(known int) {
	s.t.Helper()
	for i := range s.nodes {
		s.eventually("the cluster is whole", func() error {
			info, err := s.nodes[i].ClusterInfo(s.t.Context()).Result()
			if err == nil && (!strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(known)+"\r")) {
				err = errors.New(info)
			}
			return err
		})
	}
}

func newRedisSet(t testing.TB) *RedisSet {
	t.Helper()
	cert, key := Certificate(t)
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &RedisSet{t: t, CA: cert, Password: "redis-" + databaseName("password"),
		secure: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "localhost", RootCAs: roots,
			Certificates: []tls.Certificate{pair}}}
}

// common are the settings of all servers for replication and TLS.
func (s *RedisSet) common() []string {
	return []string{"--tls-cert-file", s.CA, "--tls-key-file", strings.TrimSuffix(s.CA, "cert.pem") + "key.pem",
		"--tls-ca-cert-file", s.CA,
		"--tls-auth-clients", "no", "--tls-replication", "yes"}
}

// serve starts a data server.
func (s *RedisSet) serve(node redisNode) {
	s.t.Helper()
	node.password = s.Password
	server, address := s.start(node)
	s.Servers, s.named = append(s.Servers, server), append(s.named, address)
	s.nodes = append(s.nodes, s.client(address, s.Password))
}

func (s *RedisSet) start(node redisNode) (server *Server, address string) {
	s.t.Helper()
	node.secure = s.secure
	server = newServer(s.t, func() (*process, error) { return startRedisNode(node) })
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	return server, options.Addr
}

func (s *RedisSet) client(address, password string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: address, Password: password, TLSConfig: s.secure, Protocol: 2,
		MaxRetries: -1, ContextTimeoutEnabled: true})
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// Node is a client of one of the Servers.
func (s *RedisSet) Node(i int) *redis.Client { return s.nodes[i] }

// Master is the index of the master of a key's shard, as reported by a server that
// answers; -1 if there is none.
func (s *RedisSet) Master(ctx context.Context, key string) int {
	for i, node := range s.nodes {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		err := node.Touch(limited, key).Err() // a replica and another shard's node refuse, in a Cluster
		cancel()
		if err == nil && s.Role(ctx, i) == "master" {
			return i
		}
	}
	return -1
}

// Move migrates a key's slot to another master of the Cluster, in the steps of `redis-cli
// --cluster reshard`. between is called several times in the middle, when the slot is on
// both. Keys with short names move first, among them those that refer to others.
func (s *RedisSet) Move(ctx context.Context, key string, between func()) {
	s.t.Helper()
	from := s.Master(ctx, key)
	masters := s.masters(ctx, from)
	if from < 0 || len(masters) == 0 {
		s.t.Fatalf("the slot of %s is at %d, and there are the masters %v", key, from, masters)
	}
	to := masters[0]
	do := func(node int, command ...any) *redis.Cmd {
		s.t.Helper()
		answer := s.nodes[node].Do(ctx, command...)
		if err := answer.Err(); err != nil {
			s.t.Fatalf("moving the slot of %s: %v: %v", key, command[:2], err)
		}
		return answer
	}
	slot, err := do(from, "CLUSTER", "KEYSLOT", key).Int()
	if err != nil {
		s.t.Fatal(err)
	}
	source, _ := do(from, "CLUSTER", "MYID").Text()
	target, _ := do(to, "CLUSTER", "MYID").Text()
	host, port, _ := net.SplitHostPort(s.named[to])
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	for {
		keys, err := do(from, "CLUSTER", "GETKEYSINSLOT", slot, 10_000).StringSlice()
		if err != nil {
			s.t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		keys = keys[:min(2, len(keys))]
		migrate := []any{"MIGRATE", host, port, "", 0, 10_000, "AUTH", s.Password, "KEYS"}
		for _, key := range keys {
			migrate = append(migrate, key)
		}
		do(from, migrate...)
		between()
	}
	for _, node := range append(masters, from) { // the new one first
		do(node, "CLUSTER", "SETSLOT", slot, "NODE", target)
	}
}

// masters are the masters except one.
func (s *RedisSet) masters(ctx context.Context, but int) (masters []int) {
	for i := range s.nodes {
		if i != but && s.Role(ctx, i) == "master" {
			masters = append(masters, i)
		}
	}
	return masters
}

// Role is the reported role of one of the Servers: master, or slave once it has its
// master's data; "" without an answer.
func (s *RedisSet) Role(ctx context.Context, i int) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	info, err := s.nodes[i].Info(ctx, "replication").Result()
	switch {
	case err != nil:
	case strings.Contains(info, "role:master"):
		return "master"
	case strings.Contains(info, "master_link_status:up"):
		return "slave"
	}
	return ""
}

func (s *RedisSet) eventually(what string, holds func() error) {
	s.t.Helper()
	for end := time.Now().Add(setWithin); ; {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("not within %v: %s: %v", setWithin, what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
