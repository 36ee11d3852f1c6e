import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { installTarball, run } from './packed.ts';

/**
 * Uses `@troupe/nostr` from its tarball, beside an installed `troupe`. Without the package, a troupe with `nostr`
 * names the command that installs it; with the package, the troupe starts from the agents file and with
 * `integrations`. Returns what was observed.
 */
export function checkNostr(app: string, tarball: string): string {
  writeFileSync(path.join(app, 'start.js'), START);
  const missing = run(app, process.execPath, ['start.js', 'agents-file']).trim();
  if (!/^package_missing: .*npm install @troupe\/nostr$/.test(missing))
    throw new Error(`without @troupe/nostr it said ${JSON.stringify(missing)}`);

  installTarball(app, tarball);

  for (const how of ['agents-file', 'integrations']) {
    const started = run(app, process.execPath, ['start.js', how]).trim();
    if (!/^[0-9a-f]{64} ws:\/\/127\.0\.0\.1:9$/.test(started))
      throw new Error(`with nostr in ${how} it said ${JSON.stringify(started)}`);
  }
  const keys = run(app, 'npx', ['--no-install', 'troupe', 'nostr', 'keys', '--help']);
  if (!keys.includes('create')) throw new Error('troupe nostr keys has no help');
  return '@troupe/nostr works from its tarball, and is asked for where it is missing';
}

/** Prints the agent's pubkey and the relay, or the code and message of the error. */
const START = `
import { createTroupe } from 'troupe';
const settings = { relays: ['ws://127.0.0.1:9'], keys: { ada: { env: 'ADA_KEY' } } };
const agents = [{ id: 'ada', provider: 'scripted', model: 'none', script: { rules: [{ reply: 'Hello' }] } }];
const env = { ADA_KEY: '1'.padStart(64, '0') };
const onWarning = () => {};
try {
  const troupe = process.argv[2] === 'integrations'
    ? await createTroupe({ agents }, { env, onWarning, integrations: [(await import('@troupe/nostr')).nostr(settings)] })
    : await createTroupe({ agents, nostr: settings }, { env, onWarning });
  const { agents: pubkeys, relays } = troupe.nostr();
  console.log(pubkeys.ada, relays[0].url);
  await troupe.close();
} catch (error) {
  console.log(error.code + ': ' + error.message);
}
`;
