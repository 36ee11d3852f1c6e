import type { ChatChange } from '../../library/asking/chat.ts';

/** Longest line, in characters. A line is told as soon as it has so many, or the words end or break. */
const LINE_CHARS = 160;

/**
 * What happens, as short lines for somebody who waits: words as they come, and calls. Owns the words that are not told
 * yet. `nameOf` gives the name of an agent.
 */
export function createProgress(nameOf: (agent: string) => string) {
  /** Open text blocks: who speaks, and what was not told yet. */
  const open = new Map<string, { agent: string; rest: string }>();
  const calls = new Map<string, string>();

  function cut(id: string, isEnd: boolean): string[] {
    const block = open.get(id);
    if (!block) return [];
    const lines: string[] = [];
    const take = (length: number) => {
      const line = block.rest.slice(0, length).trim();
      block.rest = block.rest.slice(length);
      if (line !== '') lines.push(`${nameOf(block.agent)}: ${line}`);
    };
    for (;;) {
      const end = block.rest.indexOf('\n');
      if (end >= 0 && end < LINE_CHARS) take(end + 1);
      else if (block.rest.length >= LINE_CHARS) take(LINE_CHARS);
      else break;
    }
    if (isEnd) {
      take(block.rest.length);
      open.delete(id);
    }
    return lines;
  }

  function wordsIn(change: ChatChange): string[] {
    if (change.type === 'block.start' && change.block.kind === 'text')
      open.set(change.block.id, { agent: change.block.agent, rest: '' });
    if (change.type === 'void') for (const id of change.ids) open.delete(id);
    if (change.type === 'block.end') return cut(change.id, true);
    const block = change.type === 'block.delta' ? open.get(change.id) : undefined;
    if (change.type !== 'block.delta' || !block) return [];
    block.rest += change.text;
    return cut(change.id, false);
  }

  function callsIn(change: ChatChange): string[] {
    if (change.type === 'call.start')
      calls.set(change.call.id, `${nameOf(change.call.agent)} calls ${change.call.name}`);
    if (change.type === 'call.ready') return lineOf(calls.get(change.id));
    const text = change.type === 'call.progress' ? change.text : undefined;
    if (change.type !== 'call.progress' || !text) return [];
    return lineOf(`${calls.get(change.id) ?? ''}: ${text}`);
  }

  return (change: ChatChange): string[] => [...wordsIn(change), ...callsIn(change)];
}

function lineOf(line: string | undefined): string[] {
  return line ? [line.slice(0, LINE_CHARS).toWellFormed()] : [];
}
