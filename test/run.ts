import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { COUNTS_FILE_ENV, countLine } from './reporter.ts';
import type { TestCounts } from './reporter.ts';
import { buildPage } from './services/built-page.ts';
import { bundleCli, CLI_ENV } from './services/bundled-cli.ts';
import { CHROMIUM_ENV, describeChromium, installChromium } from './services/chromium.ts';
import { describeClis, installClis, PEERS_ENV } from './services/clis.ts';
import { A2A_PYTHON_ENV, describeA2aPython, installA2aPython } from './services/a2a-python.ts';
import { describeLlama, installLlama, LLAMA_ENV } from './services/llama-server.ts';
import { describeOpenAiPython, installOpenAiPython, OPENAI_PYTHON_ENV } from './services/openai-python.ts';
import { insideArgs, insideEnv, isInside, whyNotIsolated } from './services/isolation.ts';
import { installPgBouncer, PGBOUNCER_ENV } from './services/pgbouncer.ts';
import { openScratch } from './services/scratch.ts';
import { describeServices, serviceUrls, startServices } from './services/services.ts';
import { DOES_NOT_RUN, lacksPart, type Unusable, UNUSABLE_ENV } from './services/unusable.ts';

/**
 * `npm test [-- vitest arguments]`: starts the services that tests need, runs vitest, stops the services, and ends with
 * the line `N passed, N failed, N skipped`. Exits 1 if a test failed, if no test ran at all, or if CI=true and a test
 * was skipped for want of a part, unless the part is there and does not run on this machine (`services/unusable.ts`).
 * TROUPE_TEST_SERVICES=none starts none.
 */
const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const COMPILED = path.join(ROOT, 'node_modules/.cache/compiled');

const NOTHING_COUNTED: TestCounts = { passed: 0, failed: 0, skipped: 0, skippedNames: [] };

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  using scratch = openScratch();
  process.env['TMPDIR'] = scratch.folder;
  const countsFile = path.join(scratch.folder, 'counts.json');
  const [services, clis, chromium, openAiPython, a2aPython, llama, pgBouncer] = await Promise.all([
    startServices(),
    installClis(),
    installChromium(),
    installOpenAiPython(),
    installA2aPython(),
    installLlama(),
    installPgBouncer(),
  ]);
  const unusable = {
    ...('home' in clis && clis.unusable),
    ...('missing' in chromium && onlyUnusable('Chromium', chromium.missing)),
    ...('not' in a2aPython && onlyUnusable('A2A Python SDK', a2aPython.not)),
    ...('not' in openAiPython && onlyUnusable('OpenAI Python SDK', openAiPython.not)),
  };
  const parts = {
    ...('home' in clis && { [PEERS_ENV]: clis.home }),
    ...('path' in chromium && { [CHROMIUM_ENV]: chromium.path }),
    ...('folder' in a2aPython && { [A2A_PYTHON_ENV]: JSON.stringify(a2aPython) }),
    ...('folder' in openAiPython && { [OPENAI_PYTHON_ENV]: JSON.stringify(openAiPython) }),
    [LLAMA_ENV]: JSON.stringify(llama),
    [PGBOUNCER_ENV]: JSON.stringify(pgBouncer),
    [UNUSABLE_ENV]: JSON.stringify(unusable),
  };
  try {
    // Everything is installed and tried by now: nothing from here on needs the network.
    const open = isInside() ? null : await whyNotIsolated();
    if (open === null && !isInside()) {
      await services.stop();
      return await run(
        'unshare',
        insideArgs(process.execPath, [import.meta.filename, ...args]),
        insideEnv({ ...process.env, ...parts }),
      );
    }
    console.log(`files: ${scratch.folder}`);
    console.log(describeServices(services));
    console.log(describeClis(clis));
    console.log(describeChromium(chromium));
    console.log(describeOpenAiPython(openAiPython));
    console.log(describeA2aPython(a2aPython));
    console.log(describeLlama(llama));
    console.log(`network: ${open === null ? '127.0.0.1 only' : `open (${open})`}`);
    const unbuilt = 'path' in chromium ? await buildPage() : null;
    if (unbuilt !== null) console.log(`page: not built (${unbuilt})`);
    using cli = await bundleCli();
    const found = {
      ...(cli && { [CLI_ENV]: cli.path }),
      ...parts,
    };
    const code = await runVitest(args, { ...serviceUrls(services), ...found, [COUNTS_FILE_ENV]: countsFile });
    return report(code, readCounts(countsFile));
  } finally {
    await services.stop();
  }
}

/** By part, if the reason is that it does not run here. */
function onlyUnusable(part: keyof Unusable, reason: string): Unusable {
  return reason.includes(DOES_NOT_RUN) ? { [part]: reason } : {};
}

function runVitest(args: string[], extraEnv: NodeJS.ProcessEnv): Promise<number> {
  // Tests start hundreds of processes that run the same code.
  const env: NodeJS.ProcessEnv = { NODE_COMPILE_CACHE: COMPILED, ...process.env, ...extraEnv };
  if (!process.stdout.isTTY) {
    env['NO_COLOR'] = '1';
    delete env['FORCE_COLOR'];
  }
  const vitest = path.join(ROOT, 'node_modules/vitest/vitest.mjs');
  return run(process.execPath, [vitest, 'run', ...args], env);
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  // Ctrl-C also reaches the command, since both share a process group; wait for it to end.
  process.on('SIGINT', () => {});
  const child = spawn(command, args, { cwd: ROOT, env, stdio: 'inherit' });
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });
}

/** Returns null if vitest ended before it wrote the counts. */
function readCounts(file: string): TestCounts | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as TestCounts;
  } catch {
    return null;
  }
}

function report(vitestCode: number, counts: TestCounts | null): number {
  const { passed, failed, skipped, skippedNames } = counts ?? NOTHING_COUNTED;
  const missing = process.env['CI'] === 'true' ? skippedNames.filter(lacksPart) : [];
  if (!counts) console.log(`vitest ended with code ${vitestCode} before it had counted the tests`);
  else if (passed + failed === 0) console.log('no test ran');
  for (const name of missing) console.log(`CI=true, but skipped: ${name}`);

  const total = { passed, failed: failed + missing.length, skipped: skipped - missing.length, skippedNames };
  // Never report "0 failed" for a failed run: a reader of the last line must not be misled.
  if (total.failed === 0 && (vitestCode !== 0 || passed === 0)) total.failed = 1;
  console.log(countLine(total));
  return total.failed > 0 ? 1 : 0;
}
