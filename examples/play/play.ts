/**
 * npm run example -- NAME [--auto]
 *
 * Plays an example from start to end, in memory. On a terminal you answer what agents ask; elsewhere, or with --auto, the
 * example does. Ends with code 1 if something that it claims did not happen.
 */
import { parseArgs } from 'node:util';
import { keyboard } from './keyboard.ts';
import { EXAMPLES, isExample, playExample } from './play-example.ts';

const { values: flags, positionals } = parseArgs({
  options: { auto: { type: 'boolean' } },
  allowPositionals: true,
});
const [name = ''] = positionals;
// Piped into head or less, and no longer read: nothing is wrong.
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
