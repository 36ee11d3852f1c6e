import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

interface Limits {
  timeoutMs: number;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
}

export interface Outcome {
  ok: boolean;
  stdout: string;
  /** Why it failed, in one line: the command's last words, or that it took too long. */
  reason: string;
}

/** Runs a command to its end. Does not throw: a command that is missing, fails or hangs has `ok: false`. */
export function runCommand(command: string, args: readonly string[], limits: Limits): Promise<Outcome> {
  return new Promise((resolve) => {
    const { env = process.env, cwd, timeoutMs } = limits;
    const child = spawn(command, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let all = '';
    let late = false;
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
      all += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => (all += chunk.toString()));
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
      // Its own children may still hold the pipes.
      child.stdout.destroy();
      child.stderr.destroy();
    }, timeoutMs);
    const end = (ok: boolean, reason: string) => {
      clearTimeout(timer);
      resolve({ ok, stdout, reason });
    };
    child.on('error', (error) => end(false, error.message));
    child.on('close', (code) => {
      if (late) end(false, `no end within ${timeoutMs / 1000} s`);
      else end(code === 0, lastLine(all) || `exit code ${code}`);
    });
  });
}

export function findOnPath(command: string, more: readonly string[] = []): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(path.delimiter), ...more];
  return folders.map((folder) => path.join(folder || '.', command)).find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1)?.trim() ?? '';
}
