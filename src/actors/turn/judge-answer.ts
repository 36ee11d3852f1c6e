import { TEXTS } from '../../events/model-texts.ts';
import { type Event, type EventDraft, eventOf, type GuardStoppedBody } from '../../events/index.ts';
import {
  type AnswerFault,
  changed,
  type Outcome,
  ownDraft,
  type TurnRun,
  type ModelAnswer,
} from '../attempt/turn-run.ts';

type Verdict =
  | { kind: 'accepted' }
  | { kind: 'corrected'; drafts: EventDraft[] }
  /** Accepted with work left to do, which the log reports to people. */
  | { kind: 'given up'; stop: GuardStoppedBody }
  /** The answer has a fault that the model does not correct. */
  | { kind: 'failed'; fault: AnswerFault };

/** Whether a turn may end with its present answer. */
export function judge(run: TurnRun): Verdict {
  const fault = run.answer?.fault;
  if (fault && mayTell(run, fault)) return { kind: 'corrected', drafts: faultDrafts(run, fault) };
  if (fault && !fault.isTaken) return { kind: 'failed', fault };
  const held = run.deps.features.supervision?.gate(run) ?? null;
  if (!held) return { kind: 'accepted' };
  return held.kind === 'given up' ? held : { kind: 'corrected', drafts: [noteDraft(run, held.note)] };
}

function noteDraft(run: TurnRun, content: string): EventDraft {
  return { ...ownDraft(run, `note:${run.step}`), kind: 'injection', body: { content, oneStep: true } };
}

/** Rejects an answer: its text becomes a step, and a note for the next step says why the turn continues. */
export function correct(run: TurnRun, why: readonly EventDraft[]): Outcome {
  const { answer, step: index } = run;
  const outputs: EventDraft[] = [];
  if (answer && answer.text.trim() !== '') {
    const { text, reasoning } = answer;
    outputs.push({
      ...ownDraft(run, `step:${index}`),
      kind: 'step',
      body: { index, content: text, calls: [], ...(reasoning && { reasoning }) },
    });
  }
  outputs.push(...why);
  return { event: { type: 'CORRECTED' }, run: changed(run, { step: index + 1, answer: null }, { outputs }) };
}

/** Index of the step that this event answers, from 0: a step event, or the correction of an empty answer. */
export function answeredStep(event: Event): number | null {
  const step = eventOf(event, 'step');
  if (step) return step.body.index;
  const note = event.kind === 'injection' ? /:(?:note|again):(\d+)$/.exec(event.id) : null;
  return note ? Number(note[1]) : null;
}

/** Maximum notes in a row, as many as tries of a failed call. */
const MOST_NOTES = 3;

/** The fault that the end of the answer shows; null if there is none. */
export function faultOfEnd(
  { text, calls, stop, reasoning }: ModelAnswer,
  {
    broken,
    hasTools,
    maxOutputTokens,
  }: { broken: string | undefined; hasTools: boolean; maxOutputTokens: number },
): AnswerFault | null {
  if (stop === 'refusal') return null;
  const limit = `maxOutputTokens (${maxOutputTokens})`;
  const called = broken ? ` of \`${broken}\`` : '';
  if (broken !== undefined && stop === 'length')
    return {
      note: TEXTS.turn.callCut(maxOutputTokens, called),
      code: 'provider_reply_too_long',
      message: `the answer was cut off at ${limit} within a call${called}, which was not made`,
    };
  if (broken !== undefined)
    return {
      note: TEXTS.turn.callUnread(called, hasTools),
      code: 'provider_invalid_reply',
      message: `the answer holds a call${called} that cannot be read, which was not made`,
    };
  if (stop !== 'length' || calls.length > 0 || text.trim() !== '') return null;
  const spent = reasoning ? ': the model has spent all of it on reasoning' : '';
  return {
    note: null,
    code: 'provider_reply_too_long',
    message: `the answer reached ${limit} before a word was said${spent}; raise maxOutputTokens of the agent, or lower its effort`,
  };
}

/** The fault of a call written as text; null if there is none. It is not run, because it may not be meant as a call. */
export function faultOfText(text: string, tools: readonly { name: string }[]): AnswerFault | null {
  const called = calledInText(
    text,
    tools.map(({ name }) => name),
  );
  if (called === null) return null;
  const what = `holds a call of \`${called}\` written as text`;
  return {
    note: TEXTS.turn.callInText(called),
    code: 'provider_invalid_reply',
    message: `the answer ${what}, which was not made. If this goes on, the server does not read the calls of this model: start it with a parser for them (vLLM and SGLang: --tool-call-parser, llama.cpp: --jinja), or take a model that calls tools`,
    isTaken: true,
  };
}

/** The note to the model, and the event that tells people the same. */
export function faultDrafts(run: TurnRun, { note, code, message }: AnswerFault): EventDraft[] {
  const { step } = run;
  return [
    { ...ownDraft(run, `fault:${step}`), kind: 'error', body: { code, message, step: step + 1 } },
    ...(note === null
      ? []
      : [
          {
            ...ownDraft(run, `again:${step}`),
            kind: 'injection' as const,
            body: { content: note, oneStep: true },
          },
        ]),
  ];
}

export function isFaultNote({ kind, id }: EventDraft): boolean {
  return kind === 'injection' && /:again:\d+$/.test(id);
}

/** Whether the model gets a note. It does not if earlier notes did not help or no step is left. */
function mayTell({ outputs, step, deps }: TurnRun, { note, isTaken }: AnswerFault): boolean {
  const worked = outputs.findLastIndex(({ kind }) => kind === 'tool.result');
  const told = outputs.slice(worked + 1).filter(isFaultNote).length;
  return note !== null && told < (isTaken ? 1 : MOST_NOTES) && step + 1 < deps.limits.maxSteps;
}

/**
 * Beginnings of calls in the models' own templates, which a server without the right parser passes on as text: Hermes and Qwen,
 * Llama, Mistral, Granite, Phi, Kimi, DeepSeek, GLM, MiniMax, gpt-oss, LM Studio, InternLM, Gemini, and the steps of ReAct.
 */
const MARKS =
  /<\|?(?:tool_calls?|function_calls?|tool_use|tool|function|invoke|action_start|tool_calls_section_begin|tool_call_begin|python_tag|(?:minimax|seed):tool_call|longcat_tool_call)\b|<｜tool▁calls?▁begin|\[TOOL_(?:CALLS|REQUEST)\]|functools\[|to=functions\.|✿FUNCTION✿|```tool_(?:code|call)|^Action:/gim;
/** Maximum characters between a mark and the name of its tool. */
const NEAR = 300;
const MOST_MARKS = 16;
const MOST_JSON = 65_536;
const SIGN = /[\w-]/;

/** Name of the tool that a text seems to call; null if it calls none. */
function calledInText(text: string, tools: readonly string[]): string | null {
  if (tools.length === 0 || text === '') return null;
  let marks = 0;
  for (const { index } of text.matchAll(MARKS)) {
    const near = text.slice(index, index + NEAR);
    const named = tools.find((name) => hasName(near, name));
    if (named !== undefined) return named;
    if ((marks += 1) === MOST_MARKS) break;
  }
  return text.length > MOST_JSON ? null : (calledInJson(text, tools) ?? calledInPython(text, tools));
}

function hasName(text: string, name: string): boolean {
  const at = text.indexOf(name);
  return at > 0 && !SIGN.test(text[at - 1] ?? '') && !SIGN.test(text[at + name.length] ?? '');
}

/** The tool in `{"name": "save", "arguments": {…}}` and similar JSON, alone or after words. */
function calledInJson(text: string, tools: readonly string[]): string | null {
  if (!tools.some((name) => text.includes(`"${name}"`))) return null;
  const begin = text.search(/[{[]/);
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']')) + 1;
  let value: unknown;
  try {
    value = JSON.parse(text.slice(begin, end));
  } catch {
    return null; // The text in brackets is not JSON.
  }
  const [first] = [value].flat() as unknown[];
  if (typeof first !== 'object' || first === null) return null;
  const call = first as Record<string, unknown>;
  const inner = typeof call['function'] === 'object' ? (call['function'] as Record<string, unknown>) : {};
  const name = call['name'] ?? call['tool'] ?? call['tool_name'] ?? call['action'] ?? inner?.['name'];
  const hasArgs = ['arguments', 'parameters', 'args', 'input', 'action_input'].some(
    (field) => field in call || (inner && field in inner),
  );
  return hasArgs && tools.includes(name as string) ? (name as string) : null;
}

/** The tool in `[save(to="disk")]`, if the text is nothing else. */
function calledInPython(text: string, tools: readonly string[]): string | null {
  const whole = text.trim();
  const name = /^\[?([\w.-]{1,64})\(/.exec(whole)?.[1];
  return name !== undefined && tools.includes(name) && /\)\]?$/.test(whole) ? name : null;
}
