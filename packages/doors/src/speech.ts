import type { ChatChange, Event } from './troupe.ts';

/** Names of agents by their ids. An agent that has left is named by its id. */
export function namesIn({
  agents,
}: {
  agents: readonly { id: string; name: string }[];
}): (agent: string) => string {
  return (agent) => agents.find(({ id }) => id === agent)?.name ?? agent;
}

/** One event of a stream of JSON values. */
export function dataFrame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/**
 * The texts of a conversation as one text that only grows, for protocols without authors, approvals or void text. Returns the
 * text to append for each change. Owns who is speaking.
 *  S1  Text in threads, and the reasoning of models, are left out.
 *  S2  The first speaker is not named. After the first change of speaker, every speaker is named.
 */
export function createSpeech(conversation: string, nameOf: (agent: string) => string) {
  /** All text blocks, open and ended. */
  const blocks = new Set<string>();
  let speaker: string | null = null;
  let isNamed = false;
  let hasText = false;

  function paragraph(text: string): string {
    const before = hasText ? '\n\n' : '';
    hasText = true;
    return before + text;
  }

  function lead(agent: string): string {
    isNamed ||= speaker !== null && speaker !== agent;
    const isChange = speaker !== agent;
    speaker = agent;
    return isNamed && isChange ? `**${nameOf(agent)}:** ` : '';
  }

  function ofEvent(event: Event): string {
    if (event.conversation !== conversation) return '';
    if (event.kind === 'question') {
      const { text, choices } = event.body;
      const offered = choices ? `\n${choices.map((choice) => `- ${choice}`).join('\n')}` : '';
      return paragraph(`${lead(event.author.id)}${text}${offered}`);
    }
    if (event.kind !== 'approval.requested') return '';
    const { tool, args, request } = event.body;
    return paragraph(`[${nameOf(event.author.id)} waits for approval to call ${tool} ${args} (${request})]`);
  }

  return function textOf(change: ChatChange): string {
    switch (change.type) {
      case 'block.start': {
        const { id, kind, agent } = change.block;
        if (kind !== 'text' || change.block.conversation !== conversation) return '';
        blocks.add(id);
        return paragraph(lead(agent));
      }
      case 'block.delta':
        return blocks.has(change.id) ? change.text : '';
      case 'void':
        return change.ids.some((id) => blocks.delete(id)) ? paragraph(`[void: ${change.reason}]`) : '';
      case 'event':
        return ofEvent(change.event);
      case 'block.end':
      case 'call.start':
      case 'call.delta':
      case 'call.ready':
      case 'call.progress':
      case 'call.result':
        return '';
    }
  };
}
