import type { Command } from '../../../src/events/index.ts';
import { shownCondition } from '../../../src/library/projection/needs.ts';
import { messageOf } from '../shared/format.ts';
import { hasWords } from '../shared/text-filter.tsx';
import { canErase, mayGive } from './caller.ts';
import { type Erasing, showErasure } from './dialogs.ts';
import { commandsOf } from '../parts/detail/commands.ts';
import type { InboxLine } from '../../../src/http/inbox.ts';
import { api } from './api.ts';
import { printWhole, saveExport } from './exported.ts';
import { actors, shown } from './live.ts';
import { conversations } from './inbox.ts';
import { goLive, isPast, replay, togglePlay } from './past.ts';
import { refusal } from './refusal.ts';
import { conversation, go, goElsewhere } from './route.ts';
import { agentsByNeed, nameOf, selectAgent, selectedTurn, selectTurn, turns } from './selection.ts';
import { mode } from './settings.ts';
import { toggleTheme } from './theme.ts';

/** A destination or a command. */
export interface Item {
  key: string;
  group: 'Commands' | 'Agents' | 'Turns' | 'Conversations' | 'Found';
  text: string;
  note: string;
  act: () => void;
  /** Choosing it opens a question; only the answer acts. */
  asks?: boolean;
}

/** The answers to an item that asks; the first changes nothing. */
export function answersOf({ text, act }: Item): Item[] {
  return [
    { key: 'no', group: 'Commands', text: 'Cancel', note: '', act: () => {} },
    { key: 'yes', group: 'Commands', text: `Yes: ${text}`, note: '', act },
  ];
}

const MAX_OF_GROUP = 8;
const MAX_FOUND = 20;

export function paletteItems(words: string, about: 'conversation' | null): Item[] {
  const all =
    about === 'conversation'
      ? conversationItems()
      : [...agentItems(), ...commandItems(), ...turnItems(words), ...conversationItems()];
  const counts = new Map<string, number>();
  return all.filter(({ group, text, note }) => {
    if (!hasWords(`${group} ${text} ${note}`, words)) return false;
    const count = (counts.get(group) ?? 0) + 1;
    counts.set(group, count);
    return about !== null || count <= MAX_OF_GROUP;
  });
}

/** Matches in the logs of all conversations. */
export async function searchItems(q: string): Promise<Item[]> {
  const { hits } = await api.search({ q });
  return hits.map(({ conversation, row, excerpt }) => ({
    key: `f${conversation}:${row.seq}`,
    group: 'Found',
    text: excerpt,
    note: `${conversation} ${row.seq}`,
    act: () =>
      goElsewhere({ conversation, list: 'events', kind: '*', event: row.seq, tab: 'raw', turn: row.turn }),
  }));
}

function agentItems(): Item[] {
  return agentsByNeed.value.map((agent) => ({
    key: `a${agent.id}`,
    group: 'Agents',
    text: agent.name,
    note:
      shownCondition(agent) === 'queued' ? 'queued' : [...new Set([agent.condition, agent.state])].join(' '),
    act: () => selectAgent(agent),
  }));
}

/** The turn of a number that is typed, of every agent that has had so many, before all that are listed. */
function turnItems(words: string): Item[] {
  const named = Number(/\d+/.exec(words)?.[0] ?? 0);
  const id = conversation.peek();
  const exact = agentsByNeed.value.flatMap(({ id: agent, turn, lastTurn }): Item[] => {
    const newest = Number((turn ?? lastTurn)?.split(':').at(-1) ?? 0);
    if (id === null || named < 1 || named > newest) return [];
    const key = `${id}:${agent}:${named}`;
    const act = () => go({ turn: key, agent, event: null, step: null, vs: null });
    return [{ key: `t${key}`, group: 'Turns', text: `turn ${named} of ${nameOf(agent)}`, note: '', act }];
  });
  const keys = new Set(exact.map(({ key }) => key));
  const listed = turns.value.toReversed().map((turn): Item => ({
    key: `t${turn.id}`,
    group: 'Turns',
    text: `turn ${turn.number} of ${nameOf(turn.agent)}`,
    note: turn.error ? turn.error.code : turn.status,
    act: () => selectTurn(turn),
  }));
  const noteOf = new Map(listed.map(({ key, note }) => [key, note]));
  return [
    ...exact.map((item) => ({ ...item, note: noteOf.get(item.key) ?? '' })),
    ...listed.filter(({ key }) => !keys.has(key)),
  ];
}

function conversationItems(): Item[] {
  return (conversations.value ?? []).map(conversationItem);
}

function conversationItem({ id, state, about }: InboxLine): Item {
  return {
    key: `c${id}`,
    group: 'Conversations',
    text: id,
    note: [state, about?.text].filter(Boolean).join(', '),
    act: () => goElsewhere({ conversation: id }),
  };
}

/** Conversations of any age, by id or first text. */
export async function findConversations(q: string): Promise<Item[]> {
  return (await api.inbox({ q, limit: MAX_FOUND })).lines.map(conversationItem);
}

function commandItems(): Item[] {
  const does = (text: string, act: () => void, note = ''): Item => ({
    key: `d${text}`,
    group: 'Commands',
    text,
    note,
    act,
  });
  const id = shown.value?.conversation;
  const turn = selectedTurn.value?.id ?? null;
  const asks =
    isPast.value || mode === 'read-only' || id === undefined
      ? []
      : [
          ...actors.value.flatMap((actor) =>
            commandsOf({ actor, conversation: id, agent: actor.agent, turn: null }).map(
              ({ label, command }) => ({
                ...does(`${label} ${nameOf(actor.agent)}`, () => void run(command), actor.status),
                key: `d${label} ${actor.agent}`,
                asks: command.command === 'retire',
              }),
            ),
          ),
          ...(turn === null || !mayGive('fork')
            ? []
            : [
                {
                  ...does('Fork from this turn', () => void run({ command: 'fork', turn }), turn),
                  asks: true,
                },
              ]),
        ];
  return [
    ...(isPast.value ? [does('Go live', goLive, 'l')] : []),
    ...asks,
    does('Only problems', () => go({ problems: true, list: 'turns' }), 'f'),
    does('Context management', () => go({ list: 'turns', kind: 'context' })),
    does('Stop here', togglePlay, 'space'),
    does('Replay from the first event', replay, 'r'),
    does('API: all routes', () => goElsewhere({ conversation: null, view: 'routes' })),
    does('Light or dark', toggleTheme, 'd'),
    ...(id === undefined
      ? []
      : [
          does('Export as JSONL', () => void saveExport(id, 'jsonl')),
          does('Export as HTML', () => void saveExport(id, 'html')),
          does('Print all of it', () => void printWhole(id)),
        ]),
    ...erasures().map(({ text, subject }) => does(text, () => showErasure(subject))),
  ];
}

/** Each opens a dialog that asks for confirmation. */
function erasures(): { text: string; subject: Erasing }[] {
  const open = shown.value;
  if (!canErase()) return [];
  if (!open) return [{ text: 'Erase what a person has said…', subject: { person: null, name: '' } }];
  return [
    ...open.people.map(({ id, name }) => ({
      text: `Erase what ${name} has said…`,
      subject: { person: id, name },
    })),
    { text: 'Erase this conversation…', subject: { conversation: open.conversation } },
  ];
}

async function run(command: Command): Promise<void> {
  refusal.value = null;
  try {
    const { event } = await api.command(command);
    const fork = event.kind === 'command' ? event.body.fork?.conversation : undefined;
    if (command.command === 'fork') goElsewhere({ conversation: fork ?? event.conversation });
  } catch (error) {
    refusal.value = messageOf(error);
  }
}
