import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DOORS } from '../src/library/integrations/door.ts';
import { openDoors } from '../src/library/runtime/doors.ts';
import { openApiDocument } from '../src/http/api/index.ts';
import { ENV } from './packed.ts';

/**
 * `node scripts/try-generators.ts [NAME…]`: four generators make clients of the API's document, and the clients compile. Each is
 * fetched from its registry, npm, PyPI, Go's and Maven Central (through its npm package); what cannot be had is skipped with the reason.
 * By hand: it installs some 300 MB into a temporary folder. Exits with 1 if a client is not made whole, or does not compile.
 */
const MOST_MS = 600_000;

/** Throws `Missing` for a part that cannot be had. */
type Try = (folder: string, document: string) => string;
class Missing extends Error {}

const GENERATORS: Readonly<Record<string, Try>> = {
  'openapi-typescript': (folder, document) => {
    have(folder, 'npm', [
      'install',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      'openapi-typescript',
      'typescript@5',
    ]);
    must(folder, 'npx', ['--no-install', 'openapi-typescript', document, '-o', 'api.d.ts']);
    must(folder, 'npx', ['--no-install', 'tsc', '--noEmit', '--strict', 'api.d.ts']);
    return 'its types compile with tsc --strict';
  },
  'openapi-python-client': (folder, document) => {
    have(folder, 'python3', ['-m', 'venv', 'venv']);
    have(folder, 'venv/bin/pip', ['install', '--quiet', 'openapi-python-client']);
    const options = ['--path', document, '--output-path', 'client', '--meta', 'none'];
    const said = must(folder, 'venv/bin/openapi-python-client', ['generate', ...options]);
    // It leaves out what it cannot read, and exits with 0.
    if (/WARNING parsing|Unable to process/.test(said)) throw new Error(`parts are missing:\n${said}`);
    must(folder, 'venv/bin/python', ['-m', 'compileall', '-q', 'client']);
    must(folder, 'venv/bin/python', ['-c', 'import client.models, client.api.default.send_message']);
    return 'its client is whole and can be imported';
  },
  'oapi-codegen': (folder, document) => {
    const of = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@latest';
    have(folder, 'go', ['install', of], { GOBIN: folder });
    writeFileSync(path.join(folder, 'go.mod'), 'module example.org/client\n\ngo 1.24\n');
    must(folder, './oapi-codegen', [
      '-generate',
      'types,client',
      '-package',
      'client',
      '-o',
      'client.go',
      document,
    ]);
    have(folder, 'go', ['get', 'github.com/oapi-codegen/runtime@latest']);
    must(folder, 'go', ['build', './...'], { GOFLAGS: '-mod=mod' });
    return 'its client compiles with go build';
  },
  'openapi-generator': (folder, document) => {
    have(folder, 'java', ['-version']);
    have(folder, 'npm', [
      'install',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '@openapitools/openapi-generator-cli',
    ]);
    have(folder, 'npx', ['--no-install', 'openapi-generator-cli', 'version']);
    const options = ['-i', document, '-g', 'python', '-o', 'client'];
    must(folder, 'npx', ['--no-install', 'openapi-generator-cli', 'generate', ...options]);
    must(folder, 'python3', ['-m', 'compileall', '-q', 'client/openapi_client']);
    return 'its client for Python compiles';
  },
};

const scratch = mkdtempSync(path.join(tmpdir(), 'troupe-generators-'));
try {
  process.exitCode = await main(process.argv.slice(2));
} finally {
  // Go keeps its modules without the right to delete them.
  if (existsSync(scratch)) spawnSync('chmod', ['-R', 'u+w', scratch]);
  rmSync(scratch, { recursive: true, force: true });
}

async function main(wanted: readonly string[]): Promise<number> {
  const document = path.join(scratch, 'openapi.json');
  writeFileSync(document, JSON.stringify(openApiDocument({ doors: await openDoors(DOORS) })));
  let failures = 0;
  for (const [name, attempt] of Object.entries(GENERATORS)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const folder = path.join(scratch, name);
    mkdirSync(folder);
    try {
      say(`${name}: ${attempt(folder, document)}`);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (error instanceof Missing) say(`${name}: skipped, ${reason}`);
      else {
        failures += 1;
        say(`${name}: FAILED, ${reason}`);
        say(`${name}: files: ${readdirSync(folder).join(', ')}`);
      }
    }
  }
  return failures === 0 ? 0 : 1;
}

/** Something that belongs to the machine or a registry. */
function have(cwd: string, command: string, args: string[], env: Record<string, string> = {}): string {
  const { isFine, said } = call(cwd, command, args, env);
  if (!isFine) throw new Missing(`${command} ${args.join(' ')}: ${said.slice(-300)}`);
  return said;
}

function must(cwd: string, command: string, args: string[], env: Record<string, string> = {}): string {
  const { isFine, said } = call(cwd, command, args, env);
  if (!isFine) throw new Error(`${command} ${args.join(' ')}:\n${said.slice(-3_000)}`);
  return said;
}

function call(cwd: string, command: string, args: string[], env: Record<string, string>) {
  const file = command.includes('/') ? path.resolve(cwd, command) : command;
  const options = { cwd, env: { ...ENV, ...env }, encoding: 'utf8', timeout: MOST_MS } as const;
  const { status, stdout, stderr, error } = spawnSync(file, args, {
    ...options,
    maxBuffer: 64 * 1_024 * 1_024,
  });
  return { isFine: status === 0, said: error ? error.message : `${stdout}${stderr}` };
}

function say(text: string): void {
  console.log(`try-generators: ${text}`);
}
