import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';

/**
 * A process that has loaded everything and waits. Its one line of input, a JSON array, is the command line that it then
 * runs: from there on it is the production command. Loading costs most of a start, and a process that is killed shall
 * be followed by the next one at once.
 */
const [role] = process.argv.slice(2);
const [{ runCli }] = await Promise.all([
  import('../src/cli/run-cli.ts'),
  import('../src/cli/program.ts'),
  import('../src/runtime.ts'),
  import('../src/runtime/distributed.ts'),
  import('../src/context/tokens.ts'),
  import('../src/http/index.ts'),
  import('../src/http/metrics.ts'),
  import('../src/cli/require-token.ts'),
  import('./agents.ts'),
  ...(role === 'api' ? [import('../src/cli/serve.ts')] : [import('../src/cli/worker.ts'), import('openai')]),
]);
// Else done at the end of a process, which none of these comes to.
flushCompileCache();

const lines = createInterface({ input: process.stdin });
const given = new Promise<string>((resolve) => lines.once('line', resolve));
console.log(JSON.stringify({ standby: process.pid }));
const args = JSON.parse(await given) as string[];
lines.close();
process.stdin.destroy();
process.exitCode = await runCli(args);
