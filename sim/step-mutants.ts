import type { Mutant } from './mutants.ts';

/** Mutants of the steps of an actor. */
export const STEP_MUTANTS: readonly Mutant[] = [
  {
    name: 'a commit gives the lease back although something came',
    mode: 'light',
    edits: [
      {
        file: 'store/documents/actor-steps.ts',
        find: 'const wasAddressed = await isAddressedBefore(parts, row, end);',
        replace: 'const wasAddressed = false;',
      },
    ],
  },
  {
    name: 'a commit looks for nothing, whatever came between its own events',
    mode: 'light',
    edits: [
      {
        file: 'store/documents/actor-steps.ts',
        find: 'run = run?.upTo === seq - 1 ? run : ',
        replace: 'run ??= ',
      },
    ],
  },
  {
    name: 'a beginning that another process fenced off goes on',
    mode: 'full',
    edits: [
      {
        file: 'actors/turn/turn.ts',
        find: "if (!begun) throw new TroupeError('lease_lost', `another process took over @${live.address.agent}`);",
        replace: '',
      },
      {
        file: 'store/documents/actor-steps.ts',
        find: 'export function conditionOf({ expect, change }: ActorStep): ActorCondition {',
        replace: 'export function conditionOf({ expect, change, isRepeated }: ActorStep): ActorCondition {',
      },
      {
        file: 'store/documents/actor-steps.ts',
        find: '    ...holds,',
        replace: '    ...(isRepeated ? {} : holds),',
      },
    ],
  },
  {
    name: 'what a step has left is appended again under another id',
    mode: 'full',
    edits: [
      {
        file: 'store/documents/actor-steps.ts',
        find: "if (there.hash === row.hash) return { kind: 'there', seq: there.seq, id };",
        replace: '',
      },
    ],
  },
  {
    name: 'what a step has left is forgotten before it is in the log',
    mode: 'full',
    edits: [
      {
        file: 'store/documents/actor-steps.ts',
        find: 'const appended = await publish(parts, events);\n  await told?.(rowsOf(events, appended));',
        replace: '',
      },
    ],
  },
  {
    name: 'a turn ends without its receipt',
    mode: 'light',
    edits: [
      {
        file: 'store/documents/actor-steps.ts',
        find: 'await Promise.all(entries.map(parts.putOnce));',
        replace: '',
      },
    ],
  },
];
