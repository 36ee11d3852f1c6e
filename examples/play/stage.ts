import { type Clock, type Event, systemClock, type Troupe, TroupeError } from '../../src/index.ts';
import { openWaits, type Wait } from './open-waits.ts';
import { showEvent } from './show-event.ts';
import type { People, Stage } from './story.ts';

/** The clock of this machine plus the time passed in the story. */
export function createStoryClock(): Clock & { pass(minutes: number): void } {
  let passed = 0;
  const now = () => systemClock.now() + passed;
  return { ...systemClock, now, pass: (minutes) => void (passed += minutes * 60_000) };
}

interface StageParts {
  people: People;
  clock: ReturnType<typeof createStoryClock>;
  print: (line: string) => void;
}

const MOST_WAIT_MS = 20_000;
const MOST_TRIES = 3;

export function createStage(
  troupe: Troupe,
  conversation: string,
  { people, clock, print }: StageParts,
): Stage {
  const events: Event[] = [];
  let reminded: (() => void) | null = null;
  troupe.watch((note) => {
    if (note.type !== 'event') return;
    const { event } = note;
    events.push(event);
    const line = showEvent(event);
    if (line !== null) print(event.conversation === conversation ? line : `  | ${line}`);
    if (event.id.startsWith('remind:')) reminded?.();
  });

  async function tell({ conversation: where, task }: Wait): Promise<void> {
    if (task.kind === 'question') {
      const { by, content } = await people.answer(task);
      await troupe.command({ command: 'answer', conversation: where, question: task.id, content }, by);
      return;
    }
    const { by, approved, note } = await people.decide(task);
    // The approval is bound to the arguments that were shown.
    const { argsHash } = task;
    const decision = { approved, ...(note && { note }), ...(argsHash && { argsHash }) };
    await troupe.command({ command: 'decide', conversation: where, request: task.id, ...decision }, by);
  }

  return {
    events,
    async say(message) {
      await troupe.send(conversation, message);
      await troupe.idle();
    },
    async answer() {
      for (let refused = 0; ;) {
        const [wait] = await openWaits(troupe, conversation);
        if (!wait) return;
        try {
          await tell(wait);
          refused = 0;
        } catch (error) {
          // The answer may not be one of the choices.
          if (!(error instanceof TroupeError) || ++refused >= MOST_TRIES) throw error;
          print(error.message);
        }
        await troupe.idle();
      }
    },
    async pass(minutes) {
      const due = Promise.withResolvers<void>();
      reminded = due.resolve;
      const late = setTimeout(() => due.reject(new Error('no reminder came')), MOST_WAIT_MS);
      print(`(${minutes} minutes pass)`);
      clock.pass(minutes);
      await due.promise.finally(() => clearTimeout(late));
      await troupe.idle();
    },
    claim(what, holds) {
      if (!holds) throw new Error(`this claim does not hold: ${what}`);
      print(`✓ ${what}`);
    },
  };
}
