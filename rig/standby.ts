import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';

/**
 * A process that has loaded everything and waits. It then runs the command line in its only line of input, a JSON
 * array, and from there on is the production command. Loading is most of a start, and a killed process must be
 * replaced at once.
 */
const [{ runCli }] = await Promise.all([
  import('../src/cli/run-cli.ts'),
  import('../src/cli/program.ts'),
  import('../src/library/runtime/create-troupe.ts'),
  import('../src/library/runtime/open-services.ts'),
  import('../src/context/budget/tokens.ts'),
  import('../src/http/api/index.ts'),
  import('../src/http/metrics.ts'),
  import('../src/cli/process/credentials.ts'),
  import('./agents.ts'),
  import('../src/cli/commands/serve.ts'),
]);
// Usually done at the end of a process, which none of these reaches.
flushCompileCache();

const lines = createInterface({ input: process.stdin });
const given = new Promise<string>((resolve) => lines.once('line', resolve));
console.log(JSON.stringify({ standby: process.pid }));
const args = JSON.parse(await given) as string[];
lines.close();
process.stdin.destroy();
process.exitCode = await runCli(args);
