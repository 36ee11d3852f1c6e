import type { SentPrompt } from '../../src/index.ts';
import { missedBlock, opening, type PlayedTurn, replyOf, triggersOf } from './stage.ts';

export type Paint = (style: string, text: string) => string;

const STYLES: Record<string, string> = {
  bold: '1',
  dim: '2',
  red: '31',
  green: '32',
  planner: '1;35',
  coder: '1;36',
  reviewer: '1;33',
  rules: '90',
  persona: '35',
  tools: '34',
  environment: '36',
  history: '37',
  missed: '33',
  trigger: '32',
  live: '31',
};

export function painter(colour: boolean): Paint {
  return (style, text) => {
    const code = STYLES[style];
    return colour && code !== undefined && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
  };
}

const BAR = 48;
const EXCERPT_LINES = 8;
const LINE = 100;

/** What the agent saw: the trigger, a bar and a line of its layers, and the block of missed messages first. */
export function turnLines(turn: PlayedTurn, paint: Paint): string[] {
  const { trace, prompts } = turn;
  const prompt = opening(turn);
  const { total, window } = prompt.tokens;
  const triggers = triggersOf(turn).map(({ seq, author }) => `#${seq} of ${author.name}`);
  const steps = prompts.length > 1 ? `, then ${describeSteps(prompts)}` : '';
  return [
    `${paint('dim', 'woken by')} ${triggers.join(' and ')}${paint('dim', `, turn ${trace.turn}: ${trace.status}`)}`,
    `${paint('dim', 'saw     ')} ${bar(prompt, paint)} ${total} of ${window} tokens in ${prompt.count} messages${steps}`,
    `         ${layerLine(prompt, paint)}`,
    ...excerpt(missedBlock(prompt)).map((line) => paint('dim', `         | ${line}`)),
  ];
}

function describeSteps(prompts: readonly SentPrompt[]): string {
  const more = prompts.slice(1).map(({ tokens }) => tokens.total);
  return `${more.join(', ')} in step ${prompts.length}`;
}

/** A letter or a coloured block per share of the prompt; every layer with content has at least one. */
function bar({ layers, tokens }: SentPrompt, paint: Paint): string {
  const isPlain = paint('rules', 'x') === 'x';
  return layers
    .filter((layer) => layer.tokens > 0)
    .map(({ name, tokens: own }) => {
      const cells = Math.max(1, Math.round((own / tokens.total) * BAR));
      return paint(name, (isPlain ? letter(name) : '█').repeat(cells));
    })
    .join('');
}

function letter(layer: string): string {
  return layer.slice(0, 1);
}

function layerLine({ layers }: SentPrompt, paint: Paint): string {
  return layers
    .filter(({ tokens }) => tokens > 0)
    .map(({ name, tokens }) => `${paint(name, name)} ${tokens}`)
    .join(paint('dim', ' · '));
}

/** The block without the numbers of its marks. */
function excerpt(text: string): string[] {
  const lines = text
    .replace(/^(?:(?:\[new )?#\d{6}\]?|#)$\n?/gm, '')
    .replace(/ #\d{6}\]$/gm, ']')
    .split('\n')
    .filter((line) => line !== '');
  const shown = lines.slice(0, EXCERPT_LINES).map(cut);
  return lines.length > EXCERPT_LINES ? [...shown, `… ${lines.length - EXCERPT_LINES} more lines`] : shown;
}

function cut(line: string): string {
  return line.length > LINE ? `${line.slice(0, LINE - 1)}…` : line;
}

/** The same as one line of JSON. */
export function turnJson(turn: PlayedTurn): string {
  const { scene, agent, trace, prompts } = turn;
  return JSON.stringify({
    scene,
    agent,
    turn: trace.turn,
    status: trace.status,
    trigger: triggersOf(turn).map(({ seq, kind, author }) => ({ seq, kind, author: author.name })),
    prompts: prompts.map(({ step, count, upTo, tokens, layers, verified }) => ({
      step,
      messages: count,
      upTo,
      tokens,
      layers: Object.fromEntries(layers.map(({ name, tokens: own }) => [name, own])),
      verified,
    })),
    missed: missedBlock(opening(turn)),
    reply: replyOf(turn),
  });
}
