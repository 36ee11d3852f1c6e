import { Fragment } from 'preact';
import { Dialog } from './dialog.tsx';
import { href } from '../state/route.ts';
import { version } from '../state/settings.ts';

const KEYS: readonly [string, string][] = [
  ['⌘K or Ctrl K', 'go to an agent, a turn or a conversation, search all, run a command'],
  ['j k Enter', 'next or previous row of the list; home: open it'],
  ['a d r', 'home: approve or deny the call of the row, retry all of a cause'],
  ['[ ]', 'previous or next turn'],
  ['1 – 6', 'tabs: state, prompt, diff, tools, events, raw'],
  ['/', 'filter the list by text'],
  ['f', 'only problems, or all'],
  ['space', 'pause at this moment, or play on from it'],
  ['r', 'replay from the first event'],
  ['< >', 'slower or faster replay'],
  ['← →', 'one event back or forward, while in the past'],
  ['l', 'live'],
  ['c', 'write a message'],
  ['d', 'light or dark, where no row of home has the focus'],
  ['+ − 0 s', 'timeline, while it has the focus: zoom, whole conversation, selected turn'],
  ['← → ↑ ↓', 'timeline: turns and lanes; with Shift through time'],
  ['?', 'this list'],
  ['Esc', 'close a dialog, or leave a field'],
];

export function Help() {
  return (
    <Dialog label="Keys">
      <h2>Keys</h2>
      <dl class="keys" tabIndex={0}>
        {KEYS.map(([key, does]) => (
          <Fragment key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </Fragment>
        ))}
      </dl>
      <p class="quiet">
        Troupe {version}. The address always leads back to what is on the screen. All of it is in the{' '}
        <a href={href({ conversation: null, view: 'routes' })}>API</a>, too.
      </p>
    </Dialog>
  );
}
