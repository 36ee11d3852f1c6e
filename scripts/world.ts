import { parseArgs } from 'node:util';
import { openKept, WORLDS } from '../test/page/kept-world.ts';
import { WHOLE_WORLD } from '../test/page/world.ts';

const HELP = `npm run world: plays a month of thousands of conversations into a folder, where they are kept for three hours, and serves the page on them until Ctrl-C

  --small        60 conversations in place of ${WHOLE_WORLD.conversations}
  --seed N       other conversations (default 1)
  --data FOLDER  beginning of the folder's name (default ${WORLDS})
  --port N       of the page (default 4600)
  --no-serve     only plays`;

const { values: given } = parseArgs({
  allowNegative: true,
  options: {
    data: { type: 'string', default: WORLDS },
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

await using world = (
  await openKept({
    data: given.data,
    seed: Number(given.seed),
    isSmall: given.small,
    port: Number(given.port),
  })
).world;
if (given.serve) {
  console.log(`Page  ${world.url}`);
  for (const [name, secret] of Object.entries(world.keys))
    console.log(`${name.padEnd(14)} ${world.url}#token=${secret}`);
  await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
}
