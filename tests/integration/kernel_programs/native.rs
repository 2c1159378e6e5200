use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{mpsc, Arc, Mutex};
use std::{env, fs, panic, thread, time::Duration};

fn main() {
    let total = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..8).map(|n| { let total = total.clone(); thread::spawn(move || *total.lock().unwrap() += n) }).collect();
    for each in threads { each.join().unwrap(); }
    println!("sum {}", total.lock().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || for i in 0..3 { sender.send(i).unwrap(); thread::sleep(Duration::from_millis(1)); });
    println!("{:?}", receiver.iter().collect::<Vec<i32>>());
    let mut child = Command::new("sort").arg("-r").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a\nb\n").unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    println!("{text:?} {}", child.wait().unwrap());
    println!("{:?}", Command::new("/nosuch").spawn().map(|_| ()).map_err(|e| e.kind()));
    fs::create_dir_all("/tmp/r/s").unwrap();
    fs::write("/tmp/r/s/f", "written").unwrap();
    println!("{} {:?}", fs::read_to_string("/tmp/r/s/f").unwrap(), fs::write("/etc/x", "").map_err(|e| e.to_string()));
    println!("{:?} {:?}", env::current_exe().unwrap(), env::args().skip(1).collect::<Vec<_>>());
    println!("{}", panic::catch_unwind(|| { let none: Option<i32> = None; none.unwrap() }).is_err());
    let words: BTreeMap<_, _> = "b a".split(' ').map(|w| (w, w.len())).collect();
    eprintln!("{words:?}");
    std::process::exit(5);
}
