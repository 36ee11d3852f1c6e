import type { Event } from '../../src/index.ts';
import { type Paint, turnJson, turnLines } from './show-turn.ts';
import type { PlayedTurn, Screen } from './stage.ts';

type Write = (text: string) => void;

/** Prints events as they happen. */
export function terminalScreen(paint: Paint, write: Write): Screen {
  let speaking: string | null = null;

  function endSpeech(): void {
    if (speaking !== null) write('\n');
    speaking = null;
  }

  function line(text: string): void {
    endSpeech();
    write(`${text}\n`);
  }

  return {
    scene: (number, title) => line(`\n${paint('bold', `${number}. ${title}`)}\n`),
    note: (text) => line(paint('dim', text)),
    claim: (what) => line(`  ${paint('green', '✓')} ${what}`),
    delta(agent, text) {
      if (speaking !== agent) {
        endSpeech();
        write(`  ${paint(agent, `@${agent}`)} `);
        speaking = agent;
      }
      write(text);
    },
    event(event) {
      const told = eventLine(event, paint);
      if (told !== null) line(`  ${told}`);
    },
    turn(turn) {
      endSpeech();
      for (const text of turnLines(turn, paint)) line(`    ${text}`);
    },
  };
}

/** Text of agents is shown as it streams; everything else once it is in the log. */
function eventLine(event: Event, paint: Paint): string | null {
  if (event.kind === 'message') {
    if (event.author.kind === 'agent') return null;
    const to = event.to.map((agent) => `@${agent}`).join(', ');
    return `${paint('bold', event.author.name)} ${paint('dim', `#${event.seq} to ${to}`)} ${event.body.content}`;
  }
  if (event.kind === 'membership.changed' && event.body.change === 'joined') {
    const shown = event.body.policy === 'full' ? 'the whole history' : 'only the message';
    return paint('dim', `@${event.body.agent} joins, and is shown ${shown}`);
  }
  if (event.kind === 'error')
    return `${paint('red', '✗')} ${event.body.code}: ${event.body.message}. Kept of the answer: "${event.body.partial ?? ''}"`;
  if (event.kind === 'step')
    return event.body.calls
      .map(({ name, args }) => paint('dim', `calls ${name} ${shorten(args)}`))
      .join('\n  ');
  if (event.kind === 'tool.result')
    return paint('dim', `${event.body.name}: ${event.body.outcome}, ${shorten(event.body.content)}`);
  if (event.kind === 'handoff') return paint('dim', `#${event.seq} hands over to @${event.to.join(', @')}`);
  if (event.kind === 'turn.failed')
    return `${paint('red', '✗')} the turn failed: ${event.body.code}: ${event.body.message}`;
  return null;
}

function shorten(text: string): string {
  return text.length > 76 ? `${text.slice(0, 75)}…` : text;
}

/** Prints one line per turn and nothing else. */
export function jsonScreen(write: Write): Screen {
  const silent = () => undefined;
  return {
    scene: silent,
    note: silent,
    claim: silent,
    delta: silent,
    event: silent,
    turn: (turn: PlayedTurn) => write(`${turnJson(turn)}\n`),
  };
}
