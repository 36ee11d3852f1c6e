/**
 * npm run example -- NAME [--auto]
 *
 * Plays an example from start to end, in memory. On a terminal you answer what agents ask; elsewhere, or with --auto, the
 * example does. Ends with code 1 if something that it claims did not happen.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { createTroupe, loadAgentsFile } from '../../src/index.ts';
import { keyboard } from './keyboard.ts';
import { createStage, createStoryClock } from './stage.ts';
import type { Story } from './story.ts';

const EXAMPLES = ['code-review', 'research-desk', 'support-triage'];

const { values: flags, positionals } = parseArgs({
  options: { auto: { type: 'boolean' } },
  allowPositionals: true,
});
const [name = ''] = positionals;
const folder = path.join(path.dirname(import.meta.dirname), name);

if (!existsSync(path.join(folder, 'story.ts')) || name === '') {
  console.error(`usage: npm run example -- ${EXAMPLES.join(' | ')} [--auto]`);
  process.exitCode = 2;
} else {
  try {
    await play();
  } catch (error) {
    console.error(`\n${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

async function play(): Promise<void> {
  const { story } = (await import(pathToFileURL(path.join(folder, 'story.ts')).href)) as { story: Story };
  const definition = await loadAgentsFile(path.join(folder, 'agents.ts'));
  const [agent] = definition.agents;
  const isScripted = agent?.provider === 'scripted';
  console.log(`agents: ${isScripted ? 'they follow a script' : `${agent?.provider}, ${agent?.model}`}`);

  const clock = createStoryClock();
  const limits = { ...definition.limits, sweepMs: 500 }; // A reminder comes with the next sweep.
  await using troupe = await createTroupe({ ...definition, limits }, { clock });
  const isAtKeyboard = process.stdin.isTTY && process.stdout.isTTY && !flags.auto;
  using typed = isAtKeyboard ? keyboard() : null;
  await story.play(createStage(troupe, story.conversation, { people: typed ?? story.people, clock }));
}
