import { clock, duration } from '../../shared/format.ts';
import { nameOf } from '../../state/selection.ts';
import { type Target, PART_WORDS } from '../../state/timeline/layout.ts';
import type { Part, TurnSpan } from '../../state/timeline/spans.ts';
import { dateOf } from '../../state/timeline/ticks.ts';

export interface Words {
  title: string;
  lines: string[];
}

/** A time with its date. */
function momentOf(at: number): string {
  return `${dateOf(at)} ${clock(at)}`;
}

const sum = (parts: readonly Part[]) => parts.reduce((ms, { start, end }) => ms + end - start, 0);

/** The timeline's words for a target: in the tooltip, and for screen readers. */
export function wordsOf(target: Target): Words {
  switch (target.kind) {
    case 'turn':
      return turnWords(target.turn);
    case 'part': {
      const { part, turn } = target;
      const what =
        part.kind === 'tool' ? `tool ${part.name}${part.isFailed ? ', failed' : ''}` : PART_WORDS[part.kind];
      return {
        title: `${what}, ${duration(part.end - part.start)}`,
        lines: [`turn ${turn.number} of ${nameOf(turn.agent)}`, `from ${momentOf(part.start)}`],
      };
    }
    case 'thread': {
      const { task, start, end } = target.span;
      const state = task.outcome ?? 'open';
      const whom = task.assignee === null ? 'a task' : `to ${nameOf(task.assignee)}`;
      return {
        title: `${nameOf(task.owner)} delegated ${whom}, ${state}, ${duration(end - start)}`,
        lines: [...(task.text === '' ? [] : [task.text]), `from ${momentOf(start)}`],
      };
    }
    case 'event':
      return { title: `event ${target.seq}`, lines: [] };
    case 'many': {
      const { agent, count, failed, from, to } = target;
      const bad = failed > 0 ? `, ${failed} failed` : '';
      return {
        title: `${count} turns of ${nameOf(agent)}${bad}`,
        lines: [`${momentOf(from)} – ${momentOf(to)}`, 'Click to zoom in'],
      };
    }
  }
}

function turnWords(turn: TurnSpan): Words {
  const { agent, number, status, start, end, queued, missed, error, said, parts } = turn;
  const kinds = new Map<string, Part[]>();
  for (const part of parts) {
    const word = part.kind === 'tool' ? 'tools' : PART_WORDS[part.kind];
    kinds.set(word, [...(kinds.get(word) ?? []), part]);
  }
  const spent = [...kinds].map(([word, each]) => `${word} ${duration(sum(each))}`);
  const notes = [
    error === null ? '' : error,
    queued !== null && start - queued >= 1 ? `waited ${duration(start - queued)}` : '',
    missed > 0 ? `had missed ${missed}` : '',
  ].filter((note) => note !== '');
  return {
    title: `turn ${number} of ${nameOf(agent)}, ${status}, ${duration(end - start)}`,
    lines: [
      `from ${momentOf(start)}`,
      ...(notes.length > 0 ? [notes.join(', ')] : []),
      ...(spent.length > 0 ? [spent.join(' · ')] : []),
      ...(said === '' ? [] : [said]),
    ],
  };
}
