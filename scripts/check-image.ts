import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import path from 'node:path';
import { createIgnore, type Instruction, readCopy, readDockerfile } from './dockerfile.ts';
import { ROOT } from './packed.ts';

/**
 * Builds the Dockerfile without a container engine and runs what it built: each stage in a root directory of its own (the
 * programs of this machine, this checkout's Node), then `dev --data /data` as the image's user with everything read-only
 * but /tmp and /data, until its health check passes and SIGTERM ends it. Linux, root, and the network for `npm ci`.
 */
const INSIDE = '--inside';
const PORT = '4600';
const PATH = '/node:/usr/local/bin:/usr/bin:/bin';
const HEALTHY_MS = 300_000;
const SYSTEM = ['usr', 'bin', 'sbin', 'lib', 'lib64', 'etc', 'proc', 'dev'];

const [, , word, inside = ''] = process.argv;
if (word === INSIDE) await check(inside);
else process.exitCode = enter();

/**
 * A mount namespace, so that every mount goes with the process. Only this one, outside, removes the folder: inside, what is
 * mounted below it would be removed as well.
 */
function enter(): number {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    console.log('check-image: skipped, it needs Linux and root');
    return 0;
  }
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-image-'));
  try {
    const script = [process.execPath, import.meta.filename, INSIDE, folder];
    const args = ['--mount', '--propagation', 'private', ...script];
    return spawnSync('unshare', args, { stdio: 'inherit' }).status ?? 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function check(folder: string): Promise<void> {
  const stages = readDockerfile(readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8'));
  const apps: Record<string, string> = {};
  const root = makeRoot(path.join(folder, 'root'));
  for (const { name, instructions } of stages) {
    const app = path.join(folder, name || 'image');
    mkdirSync(app);
    apps[name] = app;
    mount('--bind', app, path.join(root, 'app'));
    mount('--bind', homedir(), path.join(root, 'root'));
    for (const instruction of instructions) build(instruction, { root, app, apps });
    umount(path.join(root, 'root'));
    umount(path.join(root, 'app'));
    console.log(`check-image: ${name || 'the image'} is built`);
  }
  await runImage(root, apps[''] ?? '', stages.at(-1)?.instructions ?? []);
}

function makeRoot(root: string): string {
  for (const name of ['app', 'root', 'tmp', 'data']) mkdirSync(path.join(root, name), { recursive: true });
  mount('--bind', root, root);
  for (const name of SYSTEM) {
    const [from, to] = [`/${name}`, path.join(root, name)];
    if (!existsSync(from)) continue;
    if (lstatSync(from).isSymbolicLink()) symlinkSync(readlinkSync(from), to);
    else {
      mkdirSync(to);
      mount('--rbind', from, to);
    }
  }
  // The image's Node: the version is the same, see test/deploy/image.test.ts.
  mkdirSync(path.join(root, 'node'));
  writeFileSync(path.join(root, 'node/node'), '');
  mount('--bind', process.execPath, path.join(root, 'node/node'));
  mount('-t', 'tmpfs', 'tmpfs', path.join(root, 'tmp'));
  return root;
}

interface Place {
  root: string;
  app: string;
  apps: Record<string, string>;
}

function build({ word, text }: Instruction, { root, app, apps }: Place): void {
  if (word === 'RUN')
    run('/usr/sbin/chroot', [root, 'sh', '-c', `cd /app && ${text}`], { HOME: '/root', PATH });
  if (word !== 'COPY') return;
  const { from, sources, target } = readCopy(text);
  const isIgnored = createIgnore(readFileSync(path.join(ROOT, '.dockerignore'), 'utf8'));
  for (const source of sources) {
    const base = from === null ? ROOT : (apps[from] ?? '');
    const file = path.join(base, from === null ? source : path.relative('/app', source));
    const isOneFile = lstatSync(file).isFile();
    const to = path.join(app, target, isOneFile ? path.basename(source) : '');
    const filter = (each: string) =>
      from !== null || (!isIgnored(path.relative(ROOT, each)) && path.basename(each) !== 'node_modules');
    cpSync(file, to, { recursive: true, verbatimSymlinks: true, filter });
  }
}

async function runImage(root: string, app: string, instructions: readonly Instruction[]): Promise<void> {
  const of = (word: string) => instructions.findLast((each) => each.word === word)?.text ?? '';
  const [uid = '', gid = ''] = of('USER').split(':');
  cpSync(path.join(ROOT, 'examples/compose/agents.ts'), path.join(app, 'agents/agents.ts'));
  const data = path.join(root, 'data');
  mount('-t', 'tmpfs', 'tmpfs', data);
  chownSync(data, Number(uid), Number(gid));
  mount('--bind', app, path.join(root, 'app'));
  for (const each of [root, path.join(root, 'app')]) mount('-o', 'remount,bind,ro', each);

  const inside = [`--userspec=${uid}:${gid}`, '--groups=', root];
  const env = { PATH, NODE_ENV: 'production', TROUPE_HEALTH_PORT: PORT };
  const entry = JSON.parse(of('ENTRYPOINT')) as string[];
  const health = JSON.parse(of('HEALTHCHECK').replace(/^.*?CMD /, '')) as string[];
  const command = ['dev', '--data', '/data', '--port', PORT, '--no-reload', '/app/agents/agents.ts'];
  const child = spawn('/usr/sbin/chroot', [...inside, ...entry, ...command], { env, stdio: 'inherit' });
  const exited = once(child, 'exit');
  const since = Date.now();
  for (;;) {
    await sleep(500);
    if (spawnSync('/usr/sbin/chroot', [...inside, ...health], { env }).status === 0) break;
    if (child.exitCode !== null || Date.now() - since > HEALTHY_MS)
      throw new Error('the image is not healthy');
  }
  const written = run('/usr/sbin/chroot', [...inside, 'sh', '-c', 'touch /app/x /x 2>&1; true']);
  if (!/Read-only.*\n.*Read-only/.test(written)) throw new Error(`not read-only: ${written}`);
  child.kill('SIGTERM');
  const [code] = (await exited) as [number | null];
  if (code !== 0) throw new Error(`it ended with ${code}, not 0, on SIGTERM`);
  console.log(`check-image: healthy as user ${uid} on a read-only file system; SIGTERM ended it with 0`);
}

function mount(...args: string[]): void {
  run('mount', args);
}

function umount(target: string): void {
  run('umount', [target]);
}

/** Returns stdout; throws with all output on failure. */
function run(command: string, args: string[], env: Record<string, string> = {}): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  if (error) throw error;
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')} ended with code ${status}\n${stdout}\n${stderr}`);
  return stdout;
}
