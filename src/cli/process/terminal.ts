import { spawn } from 'node:child_process';

interface InterruptOptions {
  /** The process exits after this time at the latest, with success, because other processes take over its work. */
  withinMs?: number;
}

/** The first Ctrl-C or SIGTERM starts an orderly shutdown; the second exits at once. Returns a function that removes the handlers. */
export function onInterrupt(finish: () => void, { withinMs }: InterruptOptions = {}): () => void {
  let isFinishing = false;
  function interrupt(): void {
    if (isFinishing) process.exit(130);
    isFinishing = true;
    process.stderr.write('finishing…\n');
    // Stays set after the handlers are removed, because something may still keep the process alive.
    if (withinMs !== undefined) setTimeout(giveUp, withinMs).unref();
    finish();
  }
  function giveUp(): void {
    process.stderr.write('not everything finished in time; its leases expire by themselves\n');
    process.exit();
  }
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return () => {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  };
}

const OPENERS: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/** Opens the browser if there is one, and reports a failure. */
export async function openBrowser(url: string): Promise<void> {
  const [command, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true });
  const problem = await new Promise<Error | null>((resolve) => {
    child.once('spawn', () => resolve(null));
    child.once('error', resolve);
  });
  if (problem)
    process.stderr.write(`no browser could be opened (${problem.message}); the page is at ${url}\n`);
  else child.unref();
}
