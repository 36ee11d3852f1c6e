/**
 * npm run example -- NAME [--auto]
 *
 * Plays an example from start to end, in memory. On a terminal you answer the agents' questions; elsewhere, or with
 * --auto, the example answers them. Exits with code 1 if a claim of the example fails.
 */
import { parseArgs } from 'node:util';
import { keyboard } from './keyboard.ts';
import { EXAMPLES, isExample, playExample } from './play-example.ts';

const { values: flags, positionals } = parseArgs({
  options: { auto: { type: 'boolean' } },
  allowPositionals: true,
});
const [name = ''] = positionals;
// A closed pipe, as with head or less, is not an error.
process.stdout.on('error', () => process.exit());

if (isExample(name)) {
  using typed = process.stdin.isTTY && process.stdout.isTTY && !flags.auto ? keyboard() : null;
  try {
    await playExample(name, typed);
  } catch (error) {
    console.error(`\n${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
} else {
  console.error(`usage: npm run example -- ${EXAMPLES.join(' | ')} [--auto]`);
  process.exitCode = 2;
}
