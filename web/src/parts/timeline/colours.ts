import type { Tone } from '../../state/timeline/layout.ts';

/** The colours of `tokens.css` as the browser has resolved them for the theme, because a canvas knows no custom properties. */
export interface Colours {
  page: string;
  panel: string;
  line: string;
  strong: string;
  text: string;
  quiet: string;
  accent: string;
  soft: string;
  failed: string;
  waiting: string;
  task: string;
  compaction: string;
  font: string;
  fill: Record<Tone, string>;
  edge: Record<Tone, string>;
}

export function coloursOf(element: HTMLElement): Colours {
  const probe = document.createElement('span');
  probe.hidden = true;
  element.append(probe);
  const token = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const named = {
    page: token('page'),
    panel: token('panel'),
    line: token('line'),
    strong: token('line-strong'),
    text: token('text'),
    quiet: token('quiet'),
    accent: token('accent'),
    soft: token('accent-soft'),
    failed: token('failed'),
    waiting: token('waiting'),
    task: token('waiting'),
    compaction: token('layer-3'),
    font: getComputedStyle(element).fontFamily,
  };
  const fill: Record<Tone, string> = {
    done: token('turn'),
    running: token('running-soft'),
    failed: token('failed-soft'),
    aborted: named.page,
    build: token('layer-7'),
    relief: token('layer-3'),
    admission: named.strong,
    first_token: token('turn-line'),
    stream: named.accent,
    back_off: token('layer-8'),
    tool: token('layer-2'),
    queued: named.strong,
    wait: named.waiting,
    thread: named.panel,
    events: token('layer-7'),
  };
  const edge: Record<Tone, string> = {
    ...fill,
    done: token('turn-line'),
    running: token('running'),
    failed: named.failed,
    aborted: named.strong,
    thread: named.accent,
  };
  probe.remove();
  return { ...named, fill, edge };
}
