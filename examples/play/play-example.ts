import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadAgentsFile, openTestTroupe } from '../../src/index.ts';
import { createStage, createStoryClock } from './stage.ts';
import type { People, Story } from './story.ts';

export const EXAMPLES = ['code-review', 'research-desk', 'support-triage', 'claims'];

const FOLDER = path.dirname(import.meta.dirname);

export function isExample(name: string): boolean {
  return EXAMPLES.includes(name);
}

/** Plays an example in memory, claims in a folder that is removed afterwards; throws if a claim of the example fails. Without people, its own answers are used. */
export async function playExample(
  name: string,
  people?: People | null,
  print: (line: string) => void = console.log,
): Promise<void> {
  if (name === 'claims') return playClaims(print);
  const { story } = (await import(pathToFileURL(path.join(FOLDER, name, 'story.ts')).href)) as {
    story: Story;
  };
  const definition = await loadAgentsFile(path.join(FOLDER, name, 'agents.ts'));
  const [agent] = definition.agents;
  const isScripted = agent?.provider === 'scripted';
  print(isScripted ? 'agents: they follow a script' : `agents: ${agent?.provider}, ${agent?.model}`);

  const clock = createStoryClock();
  const constants = { limits: { sweepMs: 500 } }; // Reminders fire with the next sweep.
  await using troupe = await openTestTroupe(definition, { clock, constants });
  await story.play(createStage(troupe, story.conversation, { people: people ?? story.people, clock, print }));
}

/** Its company changes meanwhile, so it opens its troupes itself, and its people are in the play. */
async function playClaims(print: (line: string) => void): Promise<void> {
  const { playClaim } = await import('../claims/claims.ts');
  const data = await mkdtemp(path.join(tmpdir(), 'troupe-claims-'));
  try {
    await playClaim({ data }, print);
  } finally {
    await rm(data, { recursive: true });
  }
}
