import { kindOfEnd } from '../../src/providers/stop-reasons.ts';
import type { OddInput } from './odd-model.ts';

/** Takes the next choice of the form: a number below `most`. */
type Choose = (most: number) => number;
type Call = OddInput['calls'][number] & { n: number; isCut: boolean };

/** The answer as text of an event stream, in one of the forms that servers of this API have. */
export function oddFrames(input: OddInput): string {
  const form = [...input.form];
  const choose: Choose = (most) => (form.shift() ?? 0) % most;
  const { calls, cut } = input;
  const shown = calls.map((call, n): Call => {
    const isCut = cut !== null && n === calls.length - 1;
    return { ...call, n, isCut, args: isCut ? call.args.slice(0, cut) : call.args };
  });
  return { chat, responses, messages }
    [input.wire](input, shown, choose)
    .map((frame) => {
      const name = input.wire === 'chat' ? '' : `event: ${(frame as { type: string }).type}\n`;
      return `${name}data: ${JSON.stringify(frame)}\n\n`;
    })
    .join('');
}

function pieces(text: string, length: number): string[] {
  return Array.from({ length: Math.ceil(text.length / length) }, (_, at) =>
    text.slice(at * length, (at + 1) * length),
  );
}

/** The words with the thoughts in tags before them, or apart. */
function spoken({ words, thoughts }: OddInput, tag: number): string {
  const [open, close] = [
    ['<think>', '</think>'],
    ['[THINK]', '[/THINK]'],
    ['<thought>', '</thought>'],
  ][tag % 3] as [string, string];
  return thoughts === '' ? words : `${open}\n${thoughts}\n${close}\n\n${words}`;
}

/** The arguments as servers write them: text, an object, text encoded twice, an empty object before them, or twice. */
function written({ args, isCut }: Call, choice: number): { given: unknown; isWhole: boolean } {
  if (isCut || choice === 0) return { given: args, isWhole: false };
  if (choice === 1) return { given: JSON.parse(args), isWhole: true };
  if (choice === 2) return { given: JSON.stringify(args), isWhole: false };
  return { given: choice === 3 ? `{}${args}` : `${args}${args}`, isWhole: true };
}

function chat(input: OddInput, calls: readonly Call[], choose: Choose): object[] {
  const chunk = (delta: object, finish: string | null = null) => ({
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const text = spoken(input, choose(3)).match(new RegExp(`[\\s\\S]{1,${input.piece}}`, 'gu')) ?? [];
  const ids = choose(4);
  const indexes = choose(4);
  const kind = choose(5);
  const isOneChunk = choose(4) === 0;
  const namesAll = choose(4) === 0;
  const hasEmptyStart = choose(2) === 0;
  const fragments = calls.map((call) => {
    const { given, isWhole } = written(call, kind);
    const parts = isWhole || typeof given !== 'string' || isOneChunk ? [given] : pieces(given, input.piece);
    const all = hasEmptyStart && !isOneChunk ? ['', ...parts] : parts.length === 0 ? [''] : parts;
    return all.map((args, at) => ({
      ...([{ index: call.n }, { index: 0 }, {}, { index: String(call.n) }][indexes] as object),
      ...(idOf(call.n, at, ids) as object),
      // Nobody tells repeated names from new calls while the arguments are not whole and have no id.
      function: { ...((at === 0 || (namesAll && ids === 0)) && { name: call.name }), arguments: args },
    }));
  });
  const listed = isOneChunk ? [fragments.flat()] : fragments.flat().map((each) => [each]);
  return [
    chunk({ role: 'assistant', content: '' }),
    ...text.map((content) => chunk({ content })),
    ...listed.map((tool_calls) => chunk({ tool_calls })),
    chunk({}, input.end),
    { choices: [], usage: { prompt_tokens: 9, completion_tokens: 9 } },
  ];
}

/** Of its own, none, an empty one, or another with every piece. */
function idOf(n: number, at: number, kind: number): object {
  if (kind === 0) return { id: `c${n}` };
  if (kind === 1) return {};
  return { id: kind === 2 ? '' : `c${n}.${at}` };
}

function responses(input: OddInput, calls: readonly Call[], choose: Choose): object[] {
  const kind = choose(5);
  const place = choose(4);
  const text = spoken(input, choose(3));
  const events = calls.flatMap((call): object[] => {
    const { given, isWhole } = written(call, kind);
    const item = { type: 'function_call', id: `fc${call.n}`, call_id: `c${call.n}`, name: call.name };
    const added = {
      type: 'response.output_item.added',
      output_index: call.n,
      item: { ...item, arguments: '' },
    };
    const finished = (args: unknown) => ({
      type: 'response.output_item.done',
      item: { ...item, arguments: args, status: call.isCut ? 'incomplete' : 'completed' },
    });
    const parts = isWhole || typeof given !== 'string' ? [given] : pieces(given, input.piece);
    const deltas = parts.map((delta) => ({
      type: 'response.function_call_arguments.delta',
      item_id: item.id,
      delta,
    }));
    if (place === 0) return [finished(given)];
    if (place === 1) return [added, ...deltas, finished('')];
    if (place === 2)
      return [
        added,
        { type: 'response.function_call_arguments.done', item_id: item.id, arguments: given },
        finished(null),
      ];
    return [added, ...deltas, finished(given)];
  });
  const isCut = !['end', 'calls'].includes(kindOfEnd(input.end) ?? '');
  const response = {
    id: 'r',
    model: 'm',
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: input.end } : null,
    output: [],
    usage: { input_tokens: 9, output_tokens: 9 },
  };
  const words = text.match(new RegExp(`[\\s\\S]{1,${input.piece}}`, 'gu')) ?? [];
  return [
    ...words.map((delta) => ({ type: 'response.output_text.delta', delta })),
    ...events,
    { type: isCut ? 'response.incomplete' : 'response.completed', response },
  ];
}

function messages(input: OddInput, calls: readonly Call[], choose: Choose): object[] {
  const kind = choose(5);
  const place = choose(3);
  const isOneIndex = choose(3) === 0;
  const text = spoken(input, choose(3));
  const at = (n: number) => (isOneIndex ? 0 : n);
  const blocks = calls.flatMap((call): object[] => {
    const { given, isWhole } = written(call, kind);
    const isAtStart = place > 0 && !call.isCut;
    const block = { type: 'tool_use', id: `c${call.n}`, name: call.name, input: isAtStart ? given : {} };
    const parts = isWhole || typeof given !== 'string' ? [given] : pieces(given, input.piece);
    const index = at(call.n + 1);
    return [
      { type: 'content_block_start', index, content_block: block },
      ...(place === 1 && isAtStart
        ? []
        : parts.map((partial_json) => ({
            type: 'content_block_delta',
            index,
            delta: { type: 'input_json_delta', partial_json },
          }))),
    ];
  });
  const words = text.match(new RegExp(`[\\s\\S]{1,${input.piece}}`, 'gu')) ?? [];
  return [
    { type: 'message_start', message: { id: 'm1', model: 'm', usage: { input_tokens: 9 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...words.map((delta) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: delta },
    })),
    ...blocks,
    { type: 'message_delta', delta: { stop_reason: input.end }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ];
}
