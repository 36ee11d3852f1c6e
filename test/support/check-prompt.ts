import { type Event, type PromptMessage, isAbout } from '../../src/events/index.ts';

/** Lists the reasons for which a provider would refuse a request; empty for a valid one. */
export function invalidities(messages: readonly PromptMessage[]): string[] {
  const problems: string[] = [];
  const calls = new Set<string>();
  let open = new Map<string, string>();
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool') {
      if (open.get(message.call) !== message.name)
        problems.push(`${index}: result of ${message.call} without its call`);
      open.delete(message.call);
    } else {
      for (const id of open.keys())
        problems.push(`${index}: call ${id} has no result before the next message`);
      open = new Map();
    }
    if (message.role === 'assistant') {
      for (const { id, name } of message.calls ?? []) {
        if (calls.has(id)) problems.push(`${index}: call id ${id} twice`);
        calls.add(id);
        open.set(id, name);
      }
    }
    const silent = message.role === 'assistant' && (message.calls?.length ?? 0) > 0;
    if (message.content.trim() === '' && !silent) problems.push(`${index}: empty ${message.role}`);
    if (!message.content.isWellFormed()) problems.push(`${index}: lone surrogate`);
    if (message.role === 'system' && index > 0) problems.push(`${index}: system not at the front`);
  }
  for (const id of open.keys()) problems.push(`call ${id} has no result`);
  const first = messages.find(({ role }) => role !== 'system');
  if (first?.role !== 'user') problems.push(`the first message is ${first?.role}`);
  const last = messages.at(-1)?.role;
  if (last !== 'user' && last !== 'tool') problems.push(`the last message is ${last}`);
  return problems;
}

/** The seqs that do not occur in the messages exactly as often as expected. */
export function misplaced(messages: readonly PromptMessage[], expected: Iterable<number>): string[] {
  const counts = new Map<number, number>();
  for (const { seqs } of messages) for (const seq of seqs) counts.set(seq, (counts.get(seq) ?? 0) + 1);
  const problems: string[] = [];
  for (const seq of expected) {
    const count = counts.get(seq) ?? 0;
    if (count !== 1) problems.push(`event ${seq} is there ${count} times`);
    counts.delete(seq);
  }
  for (const seq of counts.keys()) problems.push(`event ${seq} should not be there`);
  return problems;
}

/** The events that a prompt of the agent must hold. Written from the rules in docs/contributing/design.md, not from the code. */
export function visibleSeqs(log: readonly Event[], agent: string): number[] {
  const answered = new Set<string>();
  const made = new Set<string>();
  const visible = (event: Event): boolean => {
    const own =
      event.author.kind === 'agent' && event.author.id === agent && !(event.to as string[]).includes(agent);
    if (event.kind === 'injection') return !event.body.oneStep && event.body.content.trim() !== '';
    if (!isAbout(event, 'own')) return false;
    switch (event.kind) {
      case 'message':
        return event.body.content.trim() !== '';
      case 'handoff':
        return !own || event.turn === undefined;
      case 'step':
        if (own) for (const { id } of event.body.calls) made.add(id);
        return own || event.body.content.trim() !== '';
      case 'tool.result': {
        const fits = own && made.has(event.body.call) && !answered.has(event.body.call);
        if (fits) answered.add(event.body.call);
        return fits;
      }
      case 'turn.failed':
      case 'turn.aborted':
        return own || event.body.partial.trim() !== '';
    }
  };
  return log.filter(visible).map(({ seq }) => seq);
}

/** The bytes of each message that go over the wire. */
export function bytes(messages: readonly PromptMessage[]): string[] {
  return messages.map((message) => {
    const { seqs: _, ...sent } = message;
    return JSON.stringify(sent);
  });
}

/** Counts how often a text occurs in the messages that are sent. */
export function occurrences(messages: readonly PromptMessage[], text: string): number {
  return bytes(messages).join('\n').split(JSON.stringify(text).slice(1, -1)).length - 1;
}
