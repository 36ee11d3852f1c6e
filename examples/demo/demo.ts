/**
 * npm run demo [-- --exit] [--fast] [--json]
 *
 * Plays a company of three scripted agents in memory: no key, no network, no files. Every scene checks what it
 * claims; the first claim that does not hold ends the demo with code 1.
 */
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createTroupe } from '../../src/index.ts';
import { createStoryClock, demoCompany, newTestRun } from './company.ts';
import { ANA, playAll, summarise } from './scenes.ts';
import { jsonScreen, terminalScreen } from './screen.ts';
import { painter } from './show-turn.ts';
import { Stage } from './stage.ts';

const CONVERSATION = 'rate-limiter';

const { values: flags } = parseArgs({
  options: { exit: { type: 'boolean' }, fast: { type: 'boolean' }, json: { type: 'boolean' } },
});
const isTerminal = process.stdout.isTTY && process.env['TERM'] !== 'dumb';
const slow = process.stdout.isTTY && !flags.fast && !flags.json;
const paint = painter(isTerminal && !process.env['NO_COLOR']);
const write = (text: string) => void process.stdout.write(text);
// A closed pipe, as with head or less, is not an error.
process.stdout.on('error', () => process.exit());

try {
  await main();
} catch (error) {
  process.stderr.write(`\ndemo: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function main(): Promise<void> {
  const started = performance.now();
  const clock = createStoryClock();
  const testRun = newTestRun();
  await using troupe = await createTroupe(demoCompany({ slow, testRun }), { clock });
  const screen = flags.json ? jsonScreen(write) : terminalScreen(paint, write);
  const stage = new Stage(troupe, CONVERSATION, screen);
  screen.note('Three scripted agents, two people, one conversation; in memory, without keys or network.');
  const rest = () => (slow ? sleep(500) : Promise.resolve());
  await playAll({ stage, pass: (minutes) => clock.pass(minutes), testRun, rest });

  const total = await summarise(stage, troupe);
  if (total.verified !== total.prompts || total.left > 0)
    throw new Error(`at the end: ${JSON.stringify(total)}`);
  if (!flags.json) write(closing(total, performance.now() - started));
  if (!flags.exit && !flags.json && process.stdin.isTTY) await converse(stage);
}

function closing(total: Awaited<ReturnType<typeof summarise>>, ms: number): string {
  const rows = [
    ['turns', `${total.turns}, all done, by 3 agents`],
    ['model calls', `${total.calls}, of which ${total.failed} broke off and was repeated`],
    ['prompt tokens', `${total.sent} in ${total.prompts} prompts`],
    ['events in the log', `${total.events}`],
    [
      'prompts verified',
      `${total.verified} of ${total.prompts}: rendered again from the log, byte for byte as sent`,
    ],
    ['took', `${(ms / 1000).toFixed(1)} s`],
  ];
  return [
    '',
    paint('bold', 'In all'),
    '',
    ...rows.map(([name = '', value]) => `  ${name.padEnd(18)} ${value}`),
    '',
    paint('bold', 'Next'),
    '',
    '  npm test                                                    the proof',
    '  npm run -s troupe -- dev examples/quickstart/agents.ts      a company of your own, over HTTP',
    '  npm run -s troupe -- --help                                 send, context, trace, import, export',
    '',
    '',
  ].join('\n');
}

/** Lets the user continue the conversation until Ctrl-C or Ctrl-D. */
async function converse(stage: Stage): Promise<void> {
  write(paint('dim', 'You are Ana. Type a message, or "@coder ..." to address one; Ctrl-C ends.\n'));
  const input = createInterface({ input: process.stdin, output: process.stdout, prompt: 'Ana> ' });
  input.on('SIGINT', () => input.close());
  input.prompt();
  for await (const typed of input) {
    const [, agent, rest] = /^@(\S+)\s+(.*)$/s.exec(typed.trim()) ?? [];
    const content = rest ?? typed.trim();
    try {
      if (content !== '') await stage.play(ANA, agent === undefined ? [] : [agent], content);
    } catch (error) {
      write(`${error instanceof Error ? error.message : String(error)}\n`);
    }
    input.prompt();
  }
  write('\n');
}
