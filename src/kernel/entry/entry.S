// The way into the kernel and back. Offsets: entry/thread_state.h. gs is the kernel's, fs the guest's. No host system call is
// made in a signal handler's context: the handler (entry/host_signals.cc) only redirects to one of these.

.section .text.entry, "ax"

.macro PUSH_REGISTERS
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %r10
  pushq %r8
  pushq %r9
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, %gs:24
  movq %rsp, %rdi
  cld
.endm

.macro LOAD_REGISTERS shift
  movq 0+\shift(%rsp), %r15
  movq 8+\shift(%rsp), %r14
  movq 16+\shift(%rsp), %r13
  movq 24+\shift(%rsp), %r12
  movq 32+\shift(%rsp), %rbp
  movq 40+\shift(%rsp), %rbx
  movq 48+\shift(%rsp), %r9
  movq 56+\shift(%rsp), %r8
  movq 64+\shift(%rsp), %r10
  movq 72+\shift(%rsp), %rdx
  movq 80+\shift(%rsp), %rsi
  movq 88+\shift(%rsp), %rdi
  movq 96+\shift(%rsp), %rax
.endm

// From a patched site or the SIGSYS handler: rcx is the address after the syscall instruction, all else the guest's.
.globl syscall_entry
syscall_entry:
  movq %rsp, %gs:8
  movq %gs:0, %rsp
  pushq $0
  pushq %r11
  pushq %rcx
  pushfq
  pushq %rcx
  pushq %gs:8
  pushq %rax
  pushq %rax
  PUSH_REGISTERS
  call dispatch
  jmp exit_restart

// From a patched cpuid instruction: rdx, which that would overwrite, is the address after it.
.globl cpuid_entry
cpuid_entry:
  movq %rsp, %gs:8
  movq %gs:0, %rsp
  pushq $1
  pushq %r11
  pushq %rcx
  pushfq
  pushq %rdx
  pushq %gs:8
  pushq $-1
  pushq %rax
  PUSH_REGISTERS
  call answer_cpuid
  jmp exit_restart

// From the host's signal handler, which interrupted guest code at gs:40.
.globl interrupted_entry
interrupted_entry:
  movq %rsp, %gs:8
  movq %gs:0, %rsp
  pushq $1
  pushq %r11
  pushq %rcx
  pushfq
  pushq %gs:40
  pushq %gs:8
  pushq $-1
  pushq %rax
  PUSH_REGISTERS
  call interrupted
  // falls through

// All but carry, parity, adjust, zero, sign, overflow, the interrupt flag, which is always set, and bit 1, which is too.
#define UNUSUAL_FLAGS 0x3ff528

// Back to the guest. A host signal that arrives in [exit_restart, exit_end) starts it over, so that work that came in
// between is seen: the frame is only read.
.globl exit_restart
exit_restart:
  movq %gs:24, %rsp
  movq %gs:16, %rcx
  cmpl $0, (%rcx)
  jne exit_work
  cmpq $0, 152(%rsp)
  jne 1f
  movl 128(%rsp), %eax
  testl $UNUSUAL_FLAGS, %eax
  jnz 2f
  // popfq takes longer than all else here: sahf sets all usual flags but the one of overflow, 0x7f + 1 that.
  movl %eax, %ecx
  shrl $11, %ecx
  andl $1, %ecx
  movb %al, %ah
  addb $0x7f, %cl
  sahf
3:
  LOAD_REGISTERS 0
  movq 120(%rsp), %rcx
  movq 112(%rsp), %rsp
  jmp *%rcx
2:
  pushq %rax
  popfq
  jmp 3b
1:
  pushq $0x2b
  pushq 120(%rsp)
  pushq 144(%rsp)
  pushq $0x33
  pushq 152(%rsp)
  LOAD_REGISTERS 40
  movq 176(%rsp), %rcx
  movq 184(%rsp), %r11
  iretq
.globl exit_end
exit_end:
exit_work:
  movq %rsp, %rdi
  call work_before_return
  jmp exit_restart

// long futex_interruptible(word, operation, value, timeout, second, third). A host signal in [wait_begin, wait_end) makes
// it return -EINTR.
.globl host_futex_interruptible
host_futex_interruptible:
  movq %rcx, %r10
.globl wait_begin
wait_begin:
  movq %gs:16, %rax
  cmpl $0, (%rax)
  jne wait_interrupted
  movl $202, %eax
  syscall
.globl wait_end
wait_end:
  ret
.globl wait_interrupted
wait_interrupted:
  movq $-4, %rax
  ret

// long host_clone_thread(flags, stack, parent_tid, child_tid): the child starts with its ThreadState on top of `stack`, above
// it the frame that it returns to the guest with.
.globl host_clone_thread
host_clone_thread:
  movq %rcx, %r10
  xorl %r8d, %r8d
  movl $56, %eax
  syscall
  testq %rax, %rax
  jz 1f
  ret
1:
  popq %rdi
  wrgsbase %rdi
  call thread_begins
  jmp exit_restart

// The end of a thread whose stack goes to another: nothing may be written to it any more.
.globl host_leave_slot
host_leave_slot:
  // rdi: the address of the word that frees the slot
  movl $0, (%rdi)
  movl $60, %eax
  xorl %edi, %edi
  syscall
  ud2

.globl host_signal_return
host_signal_return:
  movl $15, %eax
  syscall
  ud2

// Copies to and from guest memory. A fault in [user_copies_begin, user_copies_end) goes on at user_copy_fault with what is
// left in rcx, or at user_string_fault; see entry/host_signals.cc.
.globl user_copies_begin
user_copies_begin:
.globl user_copy
user_copy:
  movq %rdx, %rcx
  cmpq $16, %rdx
  jb 1f
  rep movsb
.globl user_copy_fault
user_copy_fault:
  movq %rcx, %rax
  ret
1: // short ones by hand: rep movsb takes long to start
  testb $8, %dl
  jz 2f
  movq (%rsi), %rax
  movq %rax, (%rdi)
  addq $8, %rsi
  addq $8, %rdi
2:
  testb $4, %dl
  jz 3f
  movl (%rsi), %eax
  movl %eax, (%rdi)
  addq $4, %rsi
  addq $4, %rdi
3:
  andl $3, %edx
  jz 5f
4:
  movb (%rsi), %al
  movb %al, (%rdi)
  incq %rsi
  incq %rdi
  decl %edx
  jnz 4b
5:
  xorl %eax, %eax
  ret

.globl user_zero
user_zero:
  movq %rsi, %rcx
  xorl %eax, %eax
  rep stosb
  movq %rcx, %rax
  ret

// rdi: extended state in guest memory, 64-byte aligned; rsi: which parts.
.globl user_xsave
user_xsave:
  movq $1, %rcx
  movl %esi, %eax
  movq %rsi, %rdx
  shrq $32, %rdx
  xsave64 (%rdi)
  xorl %eax, %eax
  ret
.globl user_xrstor
user_xrstor:
  movq $1, %rcx
  movl %esi, %eax
  movq %rsi, %rdx
  shrq $32, %rdx
  xrstor64 (%rdi)
  xorl %eax, %eax
  ret

.globl user_string_begin
user_string_begin:
.globl user_string
user_string:
  xorl %eax, %eax
1:
  cmpq %rdx, %rax
  jae 2f
  movb (%rsi,%rax), %cl
  movb %cl, (%rdi,%rax)
  testb %cl, %cl
  jz 2f
  incq %rax
  jmp 1b
2:
  ret
.globl user_copies_end
user_copies_end:
.globl user_string_fault
user_string_fault:
  movq $-1, %rax
  ret

// Where the host's execve(2) of the image begins.
.globl kernel_start
kernel_start:
  movq %rsp, %rdi
  andq $-16, %rsp
  call kernel_boot
  ud2

// Leaves the host's first stack for good: rdi is the new one, rsi the function to go on in.
.globl move_to_stack
move_to_stack:
  movq %rdi, %rsp
  xorl %ebp, %ebp
  call *%rsi
  ud2
