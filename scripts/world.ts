import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openWorld } from '../test/page/world-stage.ts';
import { SMALL_WORLD, WHOLE_WORLD } from '../test/page/world.ts';

const HELP = `npm run world: plays a month of thousands of conversations into a folder, once, and serves the page on it until Ctrl-C

  --small        60 conversations in place of ${WHOLE_WORLD.conversations}
  --seed N       other conversations (default 1)
  --data FOLDER  beginning of the folder's name (default node_modules/.cache/troupe-world)
  --port N       of the page (default 4600)
  --no-serve     only plays`;

const { values: given } = parseArgs({
  allowNegative: true,
  options: {
    data: { type: 'string', default: 'node_modules/.cache/troupe-world' },
    seed: { type: 'string', default: '1' },
    small: { type: 'boolean', default: false },
    port: { type: 'string', default: '4600' },
    serve: { type: 'boolean', default: true },
    help: { type: 'boolean', default: false },
  },
});
if (given.help) {
  console.log(HELP);
  process.exit(0);
}

const size = given.small ? SMALL_WORLD : WHOLE_WORLD;
const folder = `${given.data}-${given.small ? 'small-' : ''}${given.seed}`;
const whole = join(folder, 'whole');
const isPlayed = existsSync(whole);
mkdirSync(folder, { recursive: true });
const began = performance.now();
await using world = await openWorld({
  data: join(folder, 'store'),
  isPlayed,
  seed: Number(given.seed),
  size,
  port: Number(given.port),
  told: (done) => process.stderr.write(`\r${done} of ${size.conversations} conversations`),
});
if (!isPlayed) {
  writeFileSync(whole, '');
  console.log(`\nplayed in ${Math.round((performance.now() - began) / 1_000)} s`);
}
if (given.serve) {
  console.log(`Page  ${world.url}`);
  for (const [name, secret] of Object.entries(world.keys))
    console.log(`${name.padEnd(14)} ${world.url}#token=${secret}`);
  await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
}
