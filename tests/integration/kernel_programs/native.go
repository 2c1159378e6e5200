package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	var group sync.WaitGroup
	var mutex sync.Mutex
	total := 0
	for i := 0; i < 50; i++ {
		group.Add(1)
		go func(n int) { defer group.Done(); time.Sleep(time.Millisecond); mutex.Lock(); total += n; mutex.Unlock() }(i)
	}
	group.Wait()
	fmt.Println("sum", total)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-signals)
	child := exec.Command("sh", "-c", "cat; echo err >&2; exit 3")
	in, _ := child.StdinPipe()
	out, _ := child.StdoutPipe()
	fmt.Println("start", child.Start())
	io.WriteString(in, "piped\n")
	in.Close()
	line, _ := bufio.NewReader(out).ReadString('\n')
	fmt.Print(line, child.Wait(), "\n")
	_, err := exec.Command("/nosuch").Output()
	fmt.Println(err)
	fmt.Println(os.WriteFile("/tmp/go", make([]byte, 100000), 0o640), os.MkdirAll("/tmp/a/b", 0o755), os.Rename("/tmp/go", "/tmp/a/b/go"))
	content, err := os.ReadFile("/tmp/a/b/go")
	fmt.Printf("%x %v\n", sha256.Sum256(content), err)
	_, err = os.Create("/etc/x")
	fmt.Println(err)
	memory := make([][]byte, 0)
	for i := 0; i < 200; i++ {
		memory = append(memory, make([]byte, 1<<16))
	}
	fmt.Println(len(memory))
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var nothing *int
		*nothing = 1
	}()
	os.Exit(4)
}
