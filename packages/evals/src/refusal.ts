import type { ConversationRun } from './conversation-run.ts';
import type { Recording } from './recording.ts';

const NOT_RECORDED = 'not in the recording:';

/** What a model or a tool is told, or says, in place of something that was not recorded. */
export function refusal(what: string): string {
  return `${NOT_RECORDED} ${what}`;
}

/** The first thing that a run wanted and that was not recorded. Null: there is none. */
export function refusalIn({ events }: ConversationRun): string | null {
  for (const { kind, body } of events) {
    const text = kind === 'turn.failed' ? body.message : kind === 'tool.result' ? body.content : '';
    const at = text.indexOf(NOT_RECORDED);
    if (at >= 0) return text.slice(at);
  }
  return null;
}

/** The first agent that is told something else than when the recording was written. Null: there is none. */
export function changeIn({ events }: ConversationRun, { agents }: Recording): string | null {
  for (const { kind, author, context, turn } of events) {
    const recorded = agents[author.id];
    if (kind !== 'turn.started' || !recorded || !context) continue;
    const { persona = '', tools = '' } = context;
    const since = `have changed since the recording (${turn}); if that was meant, record it again`;
    if (!recorded.instructions.includes(persona)) return `the instructions of @${author.id} ${since}`;
    if (!recorded.tools.includes(tools)) return `the tools of @${author.id} ${since}`;
  }
  return null;
}

/** Hashes of what each agent was told of itself, and of its tools. */
export function agentsOf({ events }: ConversationRun): Recording['agents'] {
  const agents: Recording['agents'] = {};
  for (const { kind, author, context } of events) {
    if (kind !== 'turn.started') continue;
    const known = (agents[author.id] ??= { instructions: [], tools: [] });
    const { persona = '', tools = '' } = context ?? {};
    if (!known.instructions.includes(persona)) known.instructions.push(persona);
    if (!known.tools.includes(tools)) known.tools.push(tools);
  }
  return agents;
}
