import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { TroupeError } from '../errors.ts';
import { openTroupe, type TroupeOptions } from '../runtime.ts';
import { type Company, prepareCompany, type Replacements } from './company.ts';
import type { ConversationRun, RunEnd, RunPlace } from './conversation-run.ts';
import { createEvalClock } from './eval-clock.ts';
import { playUsers } from './play-users.ts';
import { readRun } from './read-run.ts';
import { recordedModels } from './recorded-models.ts';
import { recordedTools } from './recorded-tools.ts';
import type { Recording } from './recording.ts';
import { changeIn, refusalIn } from './refusal.ts';
import { scriptedUser, type Step } from './scripted-user.ts';
import type { NewUser } from './user.ts';

/** The people of a conversation: a step or steps of a script, or one or several users. */
export type Users = Step | readonly Step[] | { readonly users: readonly NewUser[] };

/** Options of a run. */
export interface PlayOptions extends Replacements {
  /** Id of the conversation. Default: that of the recording, else `conversation`. */
  conversation?: string | undefined;
  /**
   * Answers in place of models and tools: see `readRecording`. The run is impossible where it wants what was not recorded, and
   * where an agent's instructions or tools have changed. Default: none.
   */
  recording?: Recording | undefined;
  /** Number of the run, from 1, for users with randomness. Default 1. */
  seed?: number | undefined;
  /** Where the data is: in memory, or in a new folder below the system's for temporary files. Default `memory`. */
  data?: 'memory' | 'folder' | undefined;
  /** Most moves of all users. Default 200. */
  mostMoves?: number | undefined;
  /** Further options of `createTroupe`: `replay`, `record`, `env`, `app`. */
  troupe?: Pick<TroupeOptions, 'replay' | 'record' | 'env' | 'app' | 'integrations'> | undefined;
}

const MOST_MOVES = 200;
/** Prompts contain numbers that follow from the secret of the store. */
const TEST_SECRET = 'troupe-evals';

/**
 * Plays a conversation with a company, and gives its log as matchers take it. The clock begins at the same date each time
 * and moves on only when the script says so; with real models it goes on as usual. Throws `config_invalid`, and
 * `command_refused` if a user makes a move that is not possible.
 *
 *     const run = await playConversation(company, 'Where is my parcel?');
 *     expect(run).toHaveSaid('desk', /on its way/);
 */
export async function playConversation(
  company: Company,
  users: Users,
  options: PlayOptions = {},
): Promise<ConversationRun> {
  const run = await playToItsEnd(company, users, options);
  if (run.ended.kind === 'impossible')
    throw new TroupeError('command_refused', run.ended.why, { conversation: run.conversation });
  return run;
}

/** As `playConversation`, but gives what was played if a move is not possible. */
export async function playToItsEnd(
  company: Company,
  users: Users,
  options: PlayOptions = {},
): Promise<ConversationRun> {
  const { recording, seed = 1, data = 'memory', mostMoves = MOST_MOVES } = options;
  const { conversation = recording?.conversation ?? 'conversation' } = options;
  const prepared = await prepareCompany(company, recording ? replacementsOf(recording, options) : options);
  const { definition, agentsFile, isScripted } = prepared;
  const hasModels = !isScripted && options.troupe?.replay === undefined;
  const clock = createEvalClock({ stands: !hasModels });
  const place: RunPlace | null =
    data === 'memory' ? null : { data: mkdtempSync(path.join(tmpdir(), 'troupe-eval-')), agentsFile };
  try {
    await using troupe = await openTroupe(definition, {
      ...options.troupe,
      clock,
      data: place?.data ?? ':memory:',
      newSecret: TEST_SECRET,
    });
    const started = usersOf(users).map((newUser) => newUser({ seed }));
    const ended: RunEnd = await playUsers(troupe, started, { conversation, clock, mostMoves });
    const run = await readRun(troupe, conversation, { ended, endedAt: clock.now(), place });
    return comparedWith(options, run);
  } catch (error) {
    discard(place);
    throw error;
  }
}

/** Where a run has left the recording, it is impossible. With other models, other instructions are what is tried. */
function comparedWith({ recording, models }: PlayOptions, run: ConversationRun): ConversationRun {
  const changed = recording && models === undefined ? changeIn(run, recording) : null;
  const why = changed ?? refusalIn(run);
  return why === null ? run : { ...run, ended: { kind: 'impossible', why } };
}

function replacementsOf(recording: Recording, { models, tools }: Replacements): Replacements {
  return {
    models: { ...recordedModels(recording), ...models },
    tools: { ...recordedTools(recording), ...tools },
    standIns: recording.standIns,
  };
}

/** Removes the data of a run. */
export function discard(place: RunPlace | null): void {
  if (place) rmSync(place.data, { recursive: true, force: true });
}

function usersOf(users: Users): readonly NewUser[] {
  if (typeof users === 'object' && 'users' in users) return users.users;
  return [scriptedUser([users].flat() as Step[])];
}
