import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { describeServices, serviceUrls, startServices } from '../test/services/services.ts';

/**
 * `node scripts/with-services.ts COMMAND ARGS...`: starts the services, runs a command with their MONGODB_URL,
 * REDIS_URL and POSTGRES_URL, and stops them. Its exit code is the command's.
 */
const [command, ...args] = process.argv.slice(2);
if (command) {
  process.exitCode = await runWithServices(command, args);
} else {
  console.error('usage: node scripts/with-services.ts COMMAND ARGS...');
  process.exitCode = 2;
}

async function runWithServices(program: string, given: readonly string[]): Promise<number> {
  const services = await startServices();
  process.stderr.write(`${describeServices(services)}\n`);
  try {
    return await run(program, given, { ...process.env, ...serviceUrls(services) });
  } finally {
    await services.stop();
  }
}

function run(program: string, given: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(program, given, { env, stdio: 'inherit' });
  // Ctrl-C also reaches the command, which is in the same process group; wait for it to end.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve) => {
    child.on('error', (error) => {
      console.error(`with-services: ${error.message}`);
      resolve(127);
    });
    child.on('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
}
