import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';

const ROOT = new URL('../../', import.meta.url).href;

/** A second process that runs `script`, a module body in which `SRC` is the url of `src`. */
export function startChild(script: string) {
  const code = script.replaceAll('SRC/', `${ROOT}src/`);
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

  return {
    /** The next line it prints; empty if it ended. */
    async line(): Promise<string> {
      const { value } = await lines.next();
      return value ?? '';
    },
    write: (text: string) => void child.stdin.write(text),
    end: () => child.stdin.end(),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
