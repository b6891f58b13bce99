package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Network is hosts on this machine: each has a name, an address, an interface and routes
// of its own, and reaches the others through a router, which can drop what one says to
// another. They are namespaces of the kernel. Each is held by a process that ends with
// this one, and with it go the interfaces, the addresses and the rules: nothing is left
// behind, however this process ends. For tests that are Apart.
type Network struct {
	t      testing.TB
	ip     string
	enter  string
	router int // the process whose namespaces it is
	hosts  int
	here   int
	cuts   map[[2]*Host]bool
}

// Host is one of a Network: a machine of its own, or a service of this process, which has
// an address of its own for each, so that they can be cut off one by one.
type Host struct {
	Name    string
	Address string

	network *Network
	holder  int // 0: this process
}

// The addresses: each machine has a network with the router, with which it has the first
// two of 10.64.n.0/24; 10.64.0.0/24 is this process's, and its services are in 10.64.255.0/24.
const (
	netPrefix    = "10.64."
	servicesAt   = netPrefix + "255."
	networkRange = netPrefix + "0.0/16"
)

// NewNetwork makes one without hosts.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	if os.Getenv(apartVariable) == "" {
		t.Fatal("a network is made by tests that are testenv.Apart")
	}
	n := &Network{t: t, ip: Tool(t, "ip"), enter: Tool(t, "nsenter"), cuts: make(map[[2]*Host]bool)}
	n.router = n.hold("router")
	n.in(n.router, "link set lo up")
	if out, err := n.entering(n.router, "/bin/sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward").CombinedOutput(); err != nil {
		t.Fatalf("having the router route: %v %s", err, out)
	}
	n.in(0, "link set lo up")
	n.connect(0, os.Getpid())
	n.in(n.router, "route add "+servicesAt+"0/24 via "+netPrefix+"0.2")
	return n
}

// Host makes a machine. What runs on it is started by Command.
func (n *Network) Host(name string) *Host {
	n.t.Helper()
	n.hosts++
	h := &Host{Name: name, Address: netPrefix + strconv.Itoa(n.hosts) + ".2", network: n, holder: n.hold(name)}
	n.in(h.holder, "link set lo up")
	n.connect(n.hosts, h.holder)
	n.in(h.holder, "route add default via "+netPrefix+strconv.Itoa(n.hosts)+".1")
	return h
}

// Here is an address of this process. What it says to hosts without binding to an address
// comes from the first.
func (n *Network) Here(name string) *Host {
	n.t.Helper()
	n.here++
	h := &Host{Name: name, Address: servicesAt + strconv.Itoa(n.here), network: n}
	n.in(0, "addr add "+h.Address+"/32 dev lo")
	if n.here == 1 {
		n.in(0, "route add "+networkRange+" via "+netPrefix+"0.1 src "+h.Address)
	}
	return h
}

// Command is a program on the host; its process is the program's own.
func (h *Host) Command(program string, args ...string) *exec.Cmd {
	if h.holder == 0 {
		return exec.Command(program, args...)
	}
	return h.network.entering(h.holder, program, args...)
}

// Cut has everything that one host says to the other, and back, be lost on its way, without
// a word to either; what was said before is on its way for long.
func (n *Network) Cut(a, b *Host) {
	n.t.Helper()
	if n.cuts[[2]*Host{a, b}] || n.cuts[[2]*Host{b, a}] {
		return
	}
	n.cuts[[2]*Host{a, b}] = true
	n.in(n.router, n.rule("add", a, b), n.rule("add", b, a))
}

// Heal ends a Cut.
func (n *Network) Heal(a, b *Host) {
	n.t.Helper()
	for _, pair := range [][2]*Host{{a, b}, {b, a}} {
		if n.cuts[pair] {
			delete(n.cuts, pair)
			n.in(n.router, n.rule("del", a, b), n.rule("del", b, a))
		}
	}
}

func (n *Network) rule(do string, from, to *Host) string {
	return "rule " + do + " pref 100 from " + from.Address + " to " + to.Address + " blackhole"
}

// hold starts a process that keeps namespaces of its own, and does nothing else, until
// this one ends.
func (n *Network) hold(name string) (pid int) {
	n.t.Helper()
	cmd := exec.Command(Tool(n.t, "unshare"), "--net", "--uts", "--", "/bin/sh", "-c", `hostname "$1" && echo ready && read -r _`, "holder", name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, err := cmd.StdinPipe() // closed by the kernel when this process ends
	if err != nil {
		n.t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	var wrong strings.Builder
	cmd.Stderr = &wrong
	if err := cmd.Start(); err != nil {
		n.t.Fatalf("making host %s: %v", name, err)
	}
	n.t.Cleanup(func() {
		_ = alive.Close()
		_ = cmd.Wait() // it ends with an error: nothing was to be read
	})
	ready := make([]byte, len("ready\n"))
	if _, err := said.Read(ready); err != nil {
		n.t.Fatalf("making host %s: %v %s", name, err, wrong.String())
	}
	return cmd.Process.Pid
}

// connect has a namespace share a network with the router.
func (n *Network) connect(number, pid int) {
	n.t.Helper()
	network := netPrefix + strconv.Itoa(number)
	theirs, ours := "up"+strconv.Itoa(number), "down"+strconv.Itoa(number)
	n.in(0, fmt.Sprintf("link add %s netns %d type veth peer name %s netns %d", theirs, pid, ours, n.router))
	for _, end := range []struct {
		pid           int
		name, address string
	}{{pid, theirs, network + ".2"}, {n.router, ours, network + ".1"}} {
		if end.pid == os.Getpid() {
			end.pid = 0
		}
		n.in(end.pid, "addr add "+end.address+"/24 dev "+end.name, "link set "+end.name+" up")
	}
}

// in runs commands of ip in the namespace of a process; 0: this one's.
func (n *Network) in(pid int, commands ...string) {
	n.t.Helper()
	cmd := exec.Command(n.ip, "-batch", "-")
	if pid != 0 {
		cmd = n.entering(pid, n.ip, "-batch", "-")
	}
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v %s", strings.Join(commands, "; "), err, out)
	}
}

func (n *Network) entering(pid int, program string, args ...string) *exec.Cmd {
	return exec.Command(n.enter, append([]string{"--net=/proc/" + strconv.Itoa(pid) + "/ns/net", "--uts=/proc/" + strconv.Itoa(pid) + "/ns/uts", "--", program}, args...)...)
}
