import { type Event, type TestClock, type Troupe, TroupeError, type Wait } from './troupe.ts';
import type { RunEnd } from './conversation-run.ts';
import { clip } from './show-run.ts';
import type { Seen, User, UserMove } from './user.ts';

interface Parts {
  conversation: string;
  clock: TestClock;
  mostMoves: number;
}

const MS_PER_MINUTE = 60_000;

/**
 * Asks the users for moves, one at a time, until all are done or nobody moves. A user that waits is asked again after a move
 * of another one. Time passes only if all others wait or are done.
 */
export async function playUsers(troupe: Troupe, users: readonly User[], parts: Parts): Promise<RunEnd> {
  using stage = openStage(troupe, parts);
  const done = new Set<User>();
  const waiting = new Map<User, number>();
  for (let moves = 0; done.size < users.length;) {
    const user = users.find((each) => !done.has(each) && !waiting.has(each));
    if (!user) {
      const minutes = Math.min(...waiting.values());
      // All wait for others: nothing more comes.
      if (minutes === Infinity) break;
      await stage.pass(minutes);
      for (const [each, left] of waiting)
        if (left <= minutes) waiting.delete(each);
        else waiting.set(each, left - minutes);
      continue;
    }
    const move = await user.next(await stage.seenBy(user));
    if (move.move === 'stop') return { kind: 'impossible', why: `${user.name} cannot go on: ${move.why}` };
    if (move.move === 'done') done.add(user);
    else if (move.move === 'wait') waiting.set(user, move.minutes ?? Infinity);
    else {
      moves += 1;
      if (moves > parts.mostMoves)
        return { kind: 'impossible', why: `${user.name} has made ${parts.mostMoves} moves: it does not end` };
      const why = await stage.act(move);
      if (why !== null) return { kind: 'impossible', why: `move ${moves} of ${user.name}: ${why}` };
      waiting.clear();
    }
  }
  return { kind: 'done' };
}

type ActingMove = Exclude<UserMove, { move: 'wait' | 'done' | 'stop' }>;

function openStage(troupe: Troupe, { conversation, clock }: Parts) {
  const events: Event[] = [];
  const known = new Map<User, number>();
  const began = clock.now();
  const stop = troupe.watch((note) => {
    if (note.type === 'event') events.push(note.event);
  });
  let messages = 0;

  async function open(): Promise<Wait[]> {
    return events.length === 0 ? [] : openWaits(troupe, conversation, new Set());
  }

  /** Null, or why it is not possible. */
  async function act(move: ActingMove): Promise<string | null> {
    try {
      if (move.move === 'say') {
        const { by: author, content, to, attachments } = move;
        messages += 1;
        const id = `said-${messages}`;
        await troupe.send(conversation, { id, author, content, to, attachments });
      } else {
        const waits = await open();
        const wait = waits.find((each) => isFor(each, move));
        if (!wait) return notAsked(move, waits);
        await settle(move, wait);
      }
    } catch (error) {
      if (error instanceof TroupeError) return `${describe(move)}, which is refused: ${error.message}`;
      throw error;
    }
    await rest();
    return null;
  }

  /** A turn that waits, as before it tries again, is not over: the time that it waits for passes. */
  async function rest(): Promise<void> {
    await troupe.idle();
    for (let ms = clock.untilNext(); ms !== null; ms = clock.untilNext()) await clock.pass(ms);
  }

  async function settle(move: Exclude<ActingMove, { move: 'say' }>, { conversation: at, task }: Wait) {
    if (move.move === 'answer') {
      const { content, by } = move;
      await troupe.command({ command: 'answer', conversation: at, question: task.id, content }, by);
      return;
    }
    const { by, note } = move;
    const { id: request, argsHash } = task;
    const approved = move.move === 'approve';
    const decision = { approved, ...(note && { note }), ...(argsHash && { argsHash }) };
    await troupe.command({ command: 'decide', conversation: at, request, ...decision }, by);
  }

  return {
    act,
    async pass(minutes: number): Promise<void> {
      await clock.pass(minutes * MS_PER_MINUTE);
      await rest();
    },
    async seenBy(user: User): Promise<Seen> {
      const news = events.slice(known.get(user) ?? 0);
      known.set(user, events.length);
      const last = events.findLast(({ kind, author }) => kind === 'message' && author.kind === 'agent');
      const said = last?.kind === 'message' ? last.body.content : '';
      const minutes = (clock.now() - began) / MS_PER_MINUTE;
      return { events: [...events], news, said, waits: await open(), minutes };
    },
    [Symbol.dispose]: stop,
  };
}

/** Everything that is asked of people, in a conversation and in the threads of its open tasks. */
async function openWaits(troupe: Troupe, conversation: string, seen: Set<string>): Promise<Wait[]> {
  if (seen.has(conversation)) return [];
  seen.add(conversation);
  const { tasks } = await troupe.tasks(conversation, { open: true });
  const waits: Wait[] = [];
  for (const task of tasks) {
    if (task.kind !== 'delegation') waits.push({ conversation: conversation as Wait['conversation'], task });
    else if (task.thread !== undefined) waits.push(...(await openWaits(troupe, task.thread, seen)));
  }
  return waits;
}

function isFor({ task }: Wait, move: Exclude<ActingMove, { move: 'say' }>): boolean {
  const { by = [] } = task;
  const kind = move.move === 'answer' ? 'question' : 'approval';
  if (task.kind !== kind || (by.length > 0 && !by.includes(move.by.id))) return false;
  if (move.move === 'answer') return (task.text ?? '').includes(move.question ?? '');
  return move.tool === undefined || task.tool === move.tool;
}

function notAsked(move: ActingMove, waits: readonly Wait[]): string {
  const open = waits.map(({ task: { kind, owner, text, tool, by = [] } }) => {
    const who = by.length > 0 ? by.join(', ') : 'anybody';
    return kind === 'question'
      ? `${owner} asks ${who} ${JSON.stringify(clip(text ?? ''))}`
      : `${owner} asks ${who} to approve ${tool}`;
  });
  return `${describe(move)}, but nobody asks for that; ${open.length > 0 ? open.join('; ') : 'nothing is asked of anybody'}`;
}

function describe(move: ActingMove): string {
  const { name } = move.by;
  switch (move.move) {
    case 'say':
      return `${name} says ${JSON.stringify(clip(move.content))}`;
    case 'answer':
      return `${name} answers ${JSON.stringify(clip(move.content))}`;
    case 'approve':
    case 'deny': {
      const verb = move.move === 'approve' ? 'approves' : 'denies';
      return `${name} ${verb} ${move.tool ?? 'a call'}`;
    }
  }
}
