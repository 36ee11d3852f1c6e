import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { TroupeError } from './troupe.ts';
import { type Company, prepareCompany, type Replacements, type TroupeSettings } from './company.ts';
import type { ConversationRun, RunEnd, RunPlace, RunUser } from './conversation-run.ts';
import { openCompany } from './open-company.ts';
import { playUsers } from './play-users.ts';
import { readRun } from './read-run.ts';
import { recordedModels } from './recorded-models.ts';
import { recordedTools } from './recorded-tools.ts';
import type { Recording } from './recording.ts';
import { changeIn, refusalIn } from './refusal.ts';
import { scriptedUser, type Step } from './scripted-user.ts';
import type { NewUser, User } from './user.ts';

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
  troupe?: TroupeSettings | undefined;
}

const MOST_MOVES = 200;

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

/** As `playConversation`, but gives what was played if a move is not possible. `folder`: the data directory. Null: in memory. */
export async function playToItsEnd(
  company: Company,
  users: Users,
  options: PlayOptions = {},
  folder: string | null = options.data === 'folder' ? newFolder() : null,
): Promise<ConversationRun> {
  const { recording, seed = 1, mostMoves = MOST_MOVES } = options;
  const { conversation = recording?.conversation ?? 'conversation' } = options;
  const prepared = await prepareCompany(company, recording ? replacementsOf(recording, options) : options);
  const { agentsFile } = prepared;
  const place: RunPlace | null = folder === null ? null : { data: folder, agentsFile };
  const people: User[] = [];
  try {
    await using opened = await openCompany(prepared, options.troupe, {
      data: place?.data,
      startsAt: recording?.startsAt,
    });
    const { troupe, clock } = opened;
    for (const newUser of usersOf(users))
      people.push(newUser({ seed, conversation, troupe: options.troupe }));
    const ended: RunEnd = await playUsers(troupe, people, { conversation, clock, mostMoves });
    const endedAt = clock.now();
    const reports = await endUsers(people);
    const run = await readRun(troupe, conversation, { ended, endedAt, place, users: reports });
    return comparedWith(options, run);
  } catch (error) {
    await endUsers(people).catch(() => undefined); // The first error is the one to report.
    discard(place);
    throw error;
  }
}

function newFolder(): string {
  return mkdtempSync(path.join(tmpdir(), 'troupe-eval-'));
}

/** Ends each user once, also if one of them fails at it. */
async function endUsers(people: User[]): Promise<RunUser[]> {
  const ends = await Promise.allSettled(people.splice(0).map(async (user) => user.end?.()));
  return ends.flatMap((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value ?? [];
  });
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
    servers: recording.servers,
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
