import { vi } from 'vitest';
import { runCli } from '../../src/cli/run-cli.ts';

/** Output and exit code of a command. */
export interface Called {
  code: number;
  out: string;
  err: string;
}

let isCalling = false;

/**
 * Runs one command line in this process, in `dir` and with `env` alone. Starting a program takes half a second, and
 * there are hundreds of calls. Only for commands that read something or are refused; commands that stay, wait or need
 * signals run in processes. One at a time, because directory, variables and output are those of this process.
 */
export async function callCli(args: string[], dir: string, env: NodeJS.ProcessEnv): Promise<Called> {
  if (isCalling) throw new Error('another command runs in this process: use `run`');
  isCalling = true;
  const before = { dir: process.cwd(), env: process.env, code: process.exitCode };
  const [out, err] = [keep(process.stdout), keep(process.stderr)];
  const listeners = new Set(process.stdout.listeners('error'));
  process.chdir(dir);
  process.env = env;
  process.exitCode = undefined;
  try {
    return { code: await runCli(args), out: out.text(), err: err.text() };
  } finally {
    process.chdir(before.dir);
    process.env = before.env;
    process.exitCode = before.code;
    out.restore();
    err.restore();
    for (const each of process.stdout.listeners('error'))
      if (!listeners.has(each)) process.stdout.off('error', each as () => void);
    isCalling = false;
  }
}

function keep(stream: NodeJS.WriteStream): { text: () => string; restore: () => void } {
  let text = '';
  const spy = vi.spyOn(stream, 'write').mockImplementation((chunk) => {
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    return true;
  });
  return { text: () => text, restore: () => spy.mockRestore() };
}
