import { expect, test } from 'vitest';
import { initialTransition, transition } from 'xstate';
import { conversation, type ConversationEvent } from '../../src/machines/conversation.ts';
import { describeMachine } from '../../src/machines/describe.ts';
import { explore, pathOf } from '../support/engine-machine.ts';

const ALPHABET: ConversationEvent[] = [
  { type: 'MODE', mode: 'chat' },
  { type: 'MODE', mode: 'agent' },
  { type: 'MODE', mode: 'run' },
  { type: 'PHASE', phase: 'plan' },
  { type: 'DELEGATED' },
  { type: 'DELEGATION_ENDED' },
  { type: 'ARCHIVE' },
  { type: 'REOPEN' },
];
const visits = explore({
  start: initialTransition(conversation)[0],
  next: (snapshot, event) => transition(conversation, snapshot, event)[0],
  alphabet: ALPHABET,
  within: ({ context }) => context.openDelegations <= 2,
});

test('every state of a conversation is reached, and every event is accepted somewhere', () => {
  const described = describeMachine(conversation).states;
  expect(new Set(visits.map(({ path }) => path))).toEqual(new Set(described.map(({ path }) => path)));
  const accepted = new Set(described.flatMap(({ events }) => events.map(({ event }) => event)));
  expect(new Set(ALPHABET.map(({ type }) => type as string))).toEqual(accepted);
});

test('a conversation changes its mode from every open state, and an archived one only reopens', () => {
  for (const { path, steps } of visits) {
    for (const { event, next } of steps) {
      if (path === 'archived')
        expect(pathOf(next.value)).toBe(event.type === 'REOPEN' ? 'open.agent' : 'archived');
      else if (event.type === 'MODE') expect(pathOf(next.value)).toBe(`open.${event.mode}`);
    }
  }
});

test('open delegations are counted and never fall below none', () => {
  for (const { path, snapshot, steps } of visits) {
    const open = snapshot.context.openDelegations;
    for (const { event, next } of steps) {
      const isOpen = path !== 'archived';
      const after =
        isOpen && event.type === 'DELEGATED'
          ? open + 1
          : isOpen && event.type === 'DELEGATION_ENDED'
            ? Math.max(0, open - 1)
            : open;
      expect(next.context.openDelegations).toBe(after);
    }
  }
});
