import type { ComponentChildren } from 'preact';
import { goElsewhere, href, type Route } from '../state/route.ts';

interface GoProps {
  to: Partial<Route>;
  children: ComponentChildren;
  class?: string;
  title?: string;
  isCurrent?: boolean;
}

/** A link within the page. Its address can be copied, opened in a new tab, and shared. */
export function Go({ to, children, class: name = '', title, isCurrent = false }: GoProps) {
  return (
    <a
      class={name}
      href={href(to)}
      title={title}
      aria-current={isCurrent ? 'true' : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
        event.preventDefault();
        goElsewhere(to);
      }}
    >
      {children}
    </a>
  );
}
